"""Options for transcribing recordings."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from common.checkpoints.command_line import EmaOptions
from common.cli import INFERENCE_LOG, MEASURING
from common.errors import OptionError
from common.options import option

_measuring = partial(option, section=MEASURING)
_SUFFIXES = (".json", ".txt")
PERCENTILES = (90, 95, 99)  # of latencies


@dataclass(frozen=True)
class TranscribingOptions(EmaOptions):
    """What to transcribe, where to write it, and how to batch and time recordings."""

    input: tuple[Path, ...] = option(
        (),
        "manifests (JSON), lists of wavs/a.wav|transcript, folders, or recordings",
        names=("-i", "--transcribe-wav", "--transcribe-filelist"),  # the last two as in the original
        published=("--val-manifests",),
        required=True,
        adds_up=True,
    )
    dataset_path: Path = option(
        Path(), "folder that manifests and lists are relative to", names=("-d",), published=("--dataset-dir",)
    )
    output: tuple[Path, ...] = option(
        (),
        "name.json for transcripts and errors, or name.txt for transcripts only; a folder for the log, "
        f"{INFERENCE_LOG}; or both",
        names=("-o",),
        published=("--save-predictions", "--output-dir", "PREDICTION_FILE"),
        metavar="PATH",
        writes=True,
        adds_up=True,
    )
    save_logits: Path | None = option(
        None,
        "file for log-probabilities: a list of tensors (frames, labels and blank), one per recording, for torch.load",
        metavar="FILE",
        writes=True,
        variable="LOGITS_FILE",
    )
    quiet: bool = option(False, "print only the figures")
    log_file: Path | None = option(None, "JSON log of the figures", writes=True, variable="LOG_FILE")
    max_duration: float | None = option(None, "skip recordings of more seconds", above=0, variable="MAX_DURATION")
    batch_size: int = _measuring(
        16, "recordings in a batch", names=("-bs",), least=1, variable="BATCH_SIZE", published=("BS",)
    )
    iterations: int = _measuring(
        0,
        "batches to time, repeated if necessary, without writing files; 0: transcribe all recordings once",
        least=0,
        published=("--steps",),
    )
    warmup_steps: int = _measuring(
        0, "batches to run before timing starts", least=0, variable="WARMUP", published=("NUM_WARMUP_STEPS",)
    )
    pad_to_max_duration: bool = _measuring(
        False, "pad all batches to the length of --max-duration", variable="PAD_TO_MAX_DURATION"
    )

    @property
    def transcripts(self) -> Path | None:
        """The file for transcripts."""
        return next((path for path in self.output[::-1] if path.suffix), None)

    @property
    def log(self) -> Path | None:
        """The file for the log."""
        folder = next((path for path in self.output[::-1] if not path.suffix), None)
        return self.log_file or (None if folder is None else folder / INFERENCE_LOG)

    def __post_init__(self) -> None:
        if self.transcripts is not None and self.transcripts.suffix not in _SUFFIXES:
            wanted = f"expected a file that ends with {' or '.join(_SUFFIXES)}, or a folder for the log"
            raise OptionError(f"--output {self.transcripts}: {wanted}")


# Options of the originals that no longer exist, and what to do.
REMOVED = {
    "--override-config": "the checkpoint holds the network, and --model-config FILE sets how recordings are read",
    "--seed": "transcribing draws no random numbers; leave it out",
    "--dali-device": "recordings are read without DALI; leave it out",
    **dict.fromkeys(
        ("--torchscript", "--torchscript-export"),
        "TorchScript files are written by scripts/export_model.sh, not read; give the checkpoint",
    ),
}
