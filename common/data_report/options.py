"""Options of the data report, and the limits that they set."""

from dataclasses import dataclass
from pathlib import Path

from common.importing.options import LONGEST_CLIP, LONGEST_SILENCE
from common.options import option


@dataclass(frozen=True)
class ReportOptions:
    """Whether a corpus is reported on, and what becomes of the report."""

    report: bool = option(
        False,
        "say which clips extraction or training would refuse and which are suspicious; --symbol-set and "
        "--text-cleaners are those that the voice will be trained with",
    )
    report_output: Path | None = option(
        None, "folder for the report (default: data_report in the dataset's folder)", names=("-o",), writes=True
    )
    report_checkpoint: Path | None = option(
        None,
        "FastPitch with a learned alignment in this language, such as the one in voices/; its aligner finds texts that "
        "are not what is said",
    )
    report_strict: bool = option(False, "exit status 1 if anything at all is suspicious")


@dataclass(frozen=True)
class Limits:
    """Where a clip becomes suspicious."""

    report_outlier: float = option(
        5.0, "robust deviations from the speaker's median beyond which rate, level and pitch are suspicious", above=0
    )
    report_min_seconds: float = option(0.25, "shorter clips are suspicious", least=0)
    report_max_seconds: float = option(LONGEST_CLIP, "longer clips are suspicious", above=0)
    report_max_silence: float = option(LONGEST_SILENCE, "seconds of silence at either end", above=0)
    report_max_pause: float = option(2.0, "seconds of silence between words", above=0)
    report_max_clipping: float = option(0.0001, "share of samples in flat tops", least=0)
    report_max_dc: float = option(0.01, "mean of the samples, as a part of full scale", above=0)
    report_min_level: float = option(-45.0, "dBFS: a clip whose speech is quieter is near-silent")
