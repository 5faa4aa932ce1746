"""How good a corpus is: its measurements, what would be refused or is suspicious, and a page about both.

``run`` draws charts, so it is imported where a report is made.
"""

from common.data_report.arguments import (
    Limits,
    add_report_arguments,
    check_report_options,
    limits_from_args,
    text_from_args,
)

__all__ = ["Limits", "add_report_arguments", "check_report_options", "limits_from_args", "text_from_args"]
