"""HTML pages that look like one product: templates with one stylesheet, tables that sort, and charts."""

from .render import render_page as render_page, render_template as render_template
from .tables import (
    Cell as Cell,
    Link as Link,
    Measure as Measure,
    Number as Number,
    Recording as Recording,
    Row as Row,
    cells as cells,
    player_address as player_address,
    read_measures as read_measures,
    read_table as read_table,
    setting_rows as setting_rows,
    text_table as text_table,
)
