"""Options of an evaluation."""

from dataclasses import dataclass
from pathlib import Path

from common.options import option

GRIFFIN_LIM = "griffin-lim"  # the word for it in place of a vocoder's checkpoint
MUSHRA, AB = "mushra", "ab"  # kinds of listening tests
RESULTS = "evaluation.json"  # in the folder of an evaluation


@dataclass(frozen=True)
class EvaluationOptions:
    """What an evaluation compares sound with, and where its results go."""

    output: Path = option(Path("output/evaluation"), "folder for everything", names=("-o",), writes=True)
    fresh: bool = option(False, "start over instead of resuming an earlier run")
    dataset_path: Path = option(
        Path(), "folder that columns wav, pitch and duration start from; searched for recordings without --recordings"
    )
    recordings: Path | None = option(
        None, "folder with recordings under the utterances' names; some may be missing", variable="RECORDINGS"
    )
    transcripts: Path | None = option(
        None, "list with the words of each utterance, where the list to speak is of phones", variable="TRANSCRIPTS"
    )
    whisper: str | None = option(
        None,
        "recognizer for WER and CER: a size of Whisper, such as base, small or large-v3, or a folder with a "
        "CTranslate2 model; not given: base, unless Jasper is",
        variable="WHISPER",
    )
    language: str | None = option(
        None, "that Whisper hears, such as en or de; not given: the voice's, of copies English", metavar="TAG"
    )
    against: tuple[Path, ...] = option(
        (),
        "further systems to compare with: checkpoints, which speak in place of the one of their kind and are evaluated "
        "too, folders of other evaluations, or, to listen to, folders of sounds under the utterances' names",
    )
    listening: str | None = option(
        None,
        "write a page for listeners, who rate sounds from 0 to 100: mushra, all systems beside the recording; ab, two "
        "systems, or one and the recordings",
        choices=(MUSHRA, AB),
    )
    results: Path | None = option(
        None, "folder of listeners' result files: print and write the table of the test in --output; nothing is spoken"
    )
