"""What an extraction made, and the table that ends it: the files, and each utterance that was refused and why."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from signal import Signals

from common.extraction.features import ExtractionPlan
from common.extraction.options import PRIORS
from common.pages import text_table
from common.text.options import written_options


@dataclass
class Report:
    """What was made and what was refused."""

    n_utterances: int = 0
    totals: Counter[str] = field(default_factory=Counter)  # list of teacher-forced mels -> its utterances
    made: Counter[str] = field(default_factory=Counter)  # folder, or that list -> files
    kept: Counter[str] = field(default_factory=Counter)  # folder, or that list -> files that were complete already
    refused: list[tuple[str, str]] = field(default_factory=list)  # (list.txt:7, reason)
    written: list[tuple[str, str]] = field(default_factory=list)  # single files, with a description
    speech_seconds: float = 0.0
    elapsed_seconds: float = 0.0  # from the first check, once the workers have started, to the last file
    stopped_by: Signals | None = None


def table(report: Report, plan: ExtractionPlan) -> str:
    """Lines to print after an extraction from recordings."""
    n_good = report.n_utterances - len(report.refused)
    duration = timedelta(seconds=round(report.speech_seconds))
    rows = [("features", "made", "already complete")]
    rows += [(f"{folder}/", str(report.made[folder]), str(report.kept[folder])) for folder in plan.options.folders]
    lines = [f"{n_good} of {report.n_utterances} utterances, {duration} of speech"]
    lines += [*text_table(rows), *text_table(report.written)]
    if plan.options.extract_durations and plan.teacher is not None:
        lines.append(f"durations are of the symbols of {written_options(plan.teacher.text)}; train with these options")
    if plan.options.save_alignment_priors:
        lines.append(
            f"priors are of the symbols of {written_options(plan.options.prior_text)}; train with these options and "
            f"--alignment-priors {plan.options.dataset_path / PRIORS}"
        )
    return "\n".join([*lines, *_refusals(report, "utterances")])


def teacher_forced_table(report: Report) -> str:
    """Lines to print after making teacher-forced mels."""
    rows = [("list", "clips", "made", "already complete")]
    rows += [(name, str(n), str(report.made[name]), str(report.kept[name])) for name, n in report.totals.items()]
    return "\n".join([*text_table(rows), *_refusals(report, "clips")])


def _refusals(report: Report, unit: str) -> list[str]:
    if not report.refused:
        return []
    title = f"refused: {len(report.refused)} of {report.n_utterances} {unit}"
    return [title, *text_table([("line", "reason"), *report.refused])]
