"""The table that ends an extraction: what was made, and each utterance that was refused and why."""

from collections.abc import Sequence

from common.config import TextConfig
from common.extraction.corpus import Report
from common.extraction.features import FROM_ATTENTION, ExtractionPlan
from common.extraction.teacher import teacher_of


def table(report: Report, plan: ExtractionPlan) -> str:
    """Lines to print."""
    n_good = report.n_utterances - len(report.refused)
    rows = [("features", "made", "already whole")]
    rows += [(f"{folder}/", str(report.made[folder]), str(report.kept[folder])) for folder in plan.folders]
    lines = [f"{n_good} of {report.n_utterances} utterances, {_duration(report.speech_seconds)} of speech"]
    lines += _columns(rows)
    lines += _columns([(str(path), word) for path, word in report.written])
    if plan.durations_from == FROM_ATTENTION:
        lines.append(f"durations are of the symbols of {options_of(teacher_of(plan).text)}; train with these options")
    if report.refused:
        lines.append(f"refused: {len(report.refused)} of {report.n_utterances} utterances")
        lines += _columns([("line", "reason"), *report.refused])
    return "\n".join(lines)


def options_of(text: TextConfig) -> str:
    """The options of train.py for this text front end."""
    words = ["--input-type", text.input_type, "--symbol-set", text.symbol_set, "--text-cleaners", *text.cleaners]
    if text.p_arpabet:
        words += ["--p-arpabet", "1"]  # the teacher read every word as phones
    if text.g2p is not None:
        words += ["--g2p", text.g2p, "--g2p-language", text.g2p_language]
    return " ".join(words)


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows with all columns but the last padded to one width."""
    if not rows:
        return []
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    return ["  " + "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths)), row[-1]]) for row in rows]


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}"
