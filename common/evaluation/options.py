"""Options of an evaluation."""

from dataclasses import dataclass
from pathlib import Path

from common.options import option

GRIFFIN_LIM = "griffin-lim"  # the word for it in place of a vocoder's checkpoint


@dataclass(frozen=True)
class EvaluationOptions:
    """What an evaluation compares sound with, and where its results go."""

    output: Path = option(Path("output/evaluation"), "folder for everything", names=("-o",), writes=True)
    fresh: bool = option(False, "begin anew instead of resuming an earlier run")
    dataset_path: Path = option(
        Path(),
        "folder that the columns wav, pitch and duration start from, and that is searched for recordings where "
        "--recordings is not given",
    )
    recordings: Path | None = option(
        None, "folder with recordings under the utterances' names; some may be missing", variable="RECORDINGS"
    )
    transcripts: Path | None = option(
        None, "list with the words of each utterance, where the list to speak is of phones", variable="TRANSCRIPTS"
    )
    reader: str = option(
        "auto",
        "what turns words into phones for a voice of IPA phones: eSpeak, as for the quickstart's; none speaks the list "
        "as it is; auto: eSpeak unless the list holds phones",
        choices=("auto", "espeak", "none"),
    )
