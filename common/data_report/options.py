"""Options of the data report, including limits."""

from dataclasses import dataclass
from pathlib import Path

from common.importing.options import LONGEST_CLIP, LONGEST_SILENCE
from common.options import option


@dataclass(frozen=True)
class ReportOptions:
    """Whether to report on a corpus, and how."""

    report: bool = option(
        False,
        "report which clips extraction or training would refuse and which are suspicious; give the --symbol-set and "
        "--text-cleaners that the voice will be trained with",
    )
    report_output: Path | None = option(
        None, "folder for the report (default: data_report in the dataset's folder)", names=("-o",), writes=True
    )
    report_checkpoint: Path | None = option(
        None,
        "FastPitch with a learned alignment in this language, such as the one in voices/; its aligner finds texts that "
        "don't match the recording",
    )
    report_strict: bool = option(False, "exit with status 1 if there are any findings")


@dataclass(frozen=True)
class Limits:
    """The limits beyond which a clip is suspicious."""

    report_outlier: float = option(
        5.0, "robust deviations from the speaker's median beyond which rate, level and pitch are suspicious", above=0
    )
    report_min_seconds: float = option(0.25, "minimum duration of a clip, s", least=0)
    report_max_seconds: float = option(LONGEST_CLIP, "maximum duration of a clip, s", above=0)
    report_max_silence: float = option(LONGEST_SILENCE, "maximum silence at either end, s", above=0)
    report_max_pause: float = option(2.0, "maximum silence between words, s", above=0)
    report_max_clipping: float = option(0.0001, "maximum share of samples in flat tops", least=0)
    report_max_dc: float = option(0.01, "maximum mean of the samples, as a fraction of full scale", above=0)
    report_min_level: float = option(-45.0, "minimum level of speech, dBFS; below it, a clip is near-silent")
