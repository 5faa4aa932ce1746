"""Options of an evaluation."""

from dataclasses import dataclass
from pathlib import Path

from common.options import option

GRIFFIN_LIM = "griffin-lim"  # given instead of a vocoder checkpoint
MUSHRA, AB = "mushra", "ab"  # kinds of listening tests
RESULTS = "evaluation.json"  # in the folder of an evaluation


@dataclass(frozen=True)
class EvaluationOptions:
    """What an evaluation compares audio with, and where its results go."""

    output: Path = option(Path("output/evaluation"), "folder for all results", names=("-o",), writes=True)
    fresh: bool = option(False, "start over instead of resuming an earlier run")
    dataset_path: Path = option(
        Path(), "folder that columns wav, pitch and duration are relative to; if given, the default of --recordings"
    )
    recordings: Path | None = option(
        None, "folder with recordings named like the utterances; some may be missing", variable="RECORDINGS"
    )
    transcripts: Path | None = option(
        None, "list with the words of each utterance, if the list to speak has phones", variable="TRANSCRIPTS"
    )
    whisper: str | None = option(
        None,
        "recognizer for WER and CER: a Whisper model size, such as base, small or large-v3, or a folder with a "
        "CTranslate2 model (default: base, unless Jasper is given)",
        variable="WHISPER",
    )
    language: str | None = option(
        None, "language for Whisper, such as en or de (default: the voice's; English for copies)", metavar="TAG"
    )
    against: tuple[Path, ...] = option(
        (),
        "systems to compare with: checkpoints, which replace the generator or the vocoder and are also evaluated; "
        "folders of other evaluations; or, for listening tests, folders with sounds named like the utterances",
    )
    listening: str | None = option(
        None,
        "write a page on which listeners rate sounds from 0 to 100: mushra: all systems and the recording; ab: two "
        "systems, or one and the recordings",
        choices=(MUSHRA, AB),
    )
    results: Path | None = option(
        None, "folder of listeners' result files: only print and write a table for the test in --output"
    )
