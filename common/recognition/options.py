"""Options of transcribing recordings."""

from dataclasses import dataclass
from pathlib import Path

from common.checkpoints.command_line import WeightsOptions
from common.errors import OptionError
from common.options import option

LOG = "nvlog_infer.json"  # in a folder
_SUFFIXES = (".json", ".tsv", ".txt")


@dataclass(frozen=True)
class SpeechOptions(WeightsOptions):
    """What is transcribed, and what is kept of it.

    Raises:
        OptionError: --output is no file for transcripts and no folder.
    """

    input: tuple[Path, ...] = option(
        (),
        "manifests (JSON), lists of wavs/a.wav|transcript, folders, or recordings",
        names=("-i",),
        published=("--transcribe-wav", "--transcribe-filelist", "--val-manifests"),
        required=True,
        adds_up=True,
    )
    dataset_path: Path = option(
        Path(), "folder that manifests and lists are relative to", names=("-d",), published=("--dataset-dir",)
    )
    output: Path | None = option(
        None,
        "file for transcripts and errors, name.json or name.tsv, or for transcripts alone, name.txt; or a folder for "
        f"the log, {LOG}",
        names=("-o",),
        published=("--save-predictions",),
        metavar="PATH",
        writes=True,
    )
    output_folder: Path | None = option(
        None, f"folder for the log, {LOG}, beside --output", published=("--output-dir",), metavar="FOLDER"
    )
    save_logits: Path | None = option(
        None,
        "file for log-probabilities: a list of tensors (frames, labels and blank), one a recording, for torch.load",
        metavar="FILE",
        writes=True,
    )
    quiet: bool = option(False, "print the figures alone")
    log_file: Path | None = option(None, "JSON log of the figures", writes=True)
    max_duration: float | None = option(None, "leave out recordings of more seconds", above=0)

    @property
    def transcripts(self) -> Path | None:
        """The file for transcripts."""
        return self.output if self.output is not None and self.output.suffix else None

    @property
    def log(self) -> Path | None:
        """The file for the log."""
        folder = self.output_folder or (self.output if self.transcripts is None else None)
        return self.log_file or (None if folder is None else folder / LOG)

    def __post_init__(self) -> None:
        if self.transcripts is not None and self.transcripts.suffix not in _SUFFIXES:
            ends = " or ".join(_SUFFIXES)
            raise OptionError(f"--output {self.output}: expected a file that ends with {ends}, or a folder for the log")


@dataclass(frozen=True)
class BatchOptions:
    """How recordings are batched and measured."""

    batch_size: int = option(16, "recordings at once", names=("-bs",), least=1)
    iterations: int = option(
        0,
        "measure so many batches, repeating them if need be, and write nothing; 0: transcribe all recordings once",
        least=0,
        published=("--steps",),
    )
    warmup_steps: int = option(0, "batches before measuring begins", least=0)
    pad_to_max_duration: bool = option(False, "pad all batches to the length of --max-duration")


@dataclass(frozen=True)
class TranscribingOptions:
    """All options of transcribing.

    Raises:
        OptionError: options do not fit together.
    """

    speech: SpeechOptions
    batches: BatchOptions

    def __post_init__(self) -> None:
        if self.batches.pad_to_max_duration and self.speech.max_duration is None:
            raise OptionError("--pad-to-max-duration needs --max-duration")
        kept = {"--output": self.speech.transcripts, "--save-logits": self.speech.save_logits}
        given = [name for name, path in kept.items() if path is not None]
        if self.batches.iterations and given:
            raise OptionError(f"{given[0]} needs transcripts, and --iterations only measures; leave one of them out")


_TORCHSCRIPT = "TorchScript files are written by scripts/export_model.sh, not read; give the checkpoint"
# Options of the originals that no longer exist, and what to do.
REMOVED = {
    "--override-config": "the checkpoint holds the network, and --model-config FILE says how recordings are read",
    "--seed": "transcribing draws no random numbers; leave it out",
    "--dali-device": "recordings are read without DALI; leave it out",
    "--torchscript": _TORCHSCRIPT,
    "--torchscript-export": _TORCHSCRIPT,
}
