"""What the scripts share: models and their variables, GPUs and processes, checkpoints, and commands run or printed."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from common.errors import InputError, OptionError, shown
from common.options import option, read_switch
from common.registry import get_model

ROOT = Path(__file__).resolve().parents[1]
MODELS = ("FastPitch", "Tacotron2", "HiFi-GAN", "WaveGlow", "Harmonic", "Jasper")
# Utterances, or a vocoder's segments, in an update of the published runs: the least and the most.
GLOBAL_BATCHES = {
    "FastPitch": (256, 256),
    "HiFi-GAN": (128, 128),
    "Jasper": (512, 1024),
    "Tacotron2": (48, 1024),
    "WaveGlow": (4, 80),
    "Harmonic": (8, 8),
}
# How Python starts torchrun. It leaves SIGHUP to the system: under nohup, training outlives a closed terminal.
TORCHRUN = ["-m", "torch.distributed.run", "--signals-to-handle", "SIGINT,SIGTERM,SIGQUIT"]
_POSITIONS = ("DATASET_PATH", "MODEL_CONFIG", "OUTPUT_DIR", "CHECKPOINT")  # arguments of Jasper's original scripts


@dataclass(frozen=True)
class Gpus:
    """The GPUs of each machine that a script asks for."""

    num_gpus: str = option("auto", "GPUs of each machine; auto: all there are; 0: the CPU", variable="NUM_GPUS")
    cpu: bool | None = option(None, "older name of NUM_GPUS=0", variable="CPU")
    cuda: bool | None = option(None, "older name of NUM_GPUS=1; false: of NUM_GPUS=0", variable="CUDA")

    def number(self, most: int | None = None) -> int:
        """How many are used, of ``most`` that a command can use.

        Raises:
            OptionError: the variables do not say a number of at most ``most``, or contradict each other.
        """
        off = self.cpu is True or self.cuda is False
        if self.num_gpus == "auto":
            there = 0 if off else 1 if self.cuda else count_gpus()
            return there if most is None else min(there, most)
        if not self.num_gpus.isdecimal() or not str(int(self.num_gpus)) == self.num_gpus or int(self.num_gpus) > 999:
            raise OptionError(f"NUM_GPUS={shown(self.num_gpus)[1:-1]}: expected auto or a whole number from 0 to 999")
        number = int(self.num_gpus)
        if number and off:
            said = " ".join(f"{name}={os.environ.get(name, '')}" for name in ("CPU", "CUDA"))
            raise OptionError(f"{said}: NUM_GPUS={number} is set too; leave one out")
        if most is not None and number > most:
            raise OptionError(f"NUM_GPUS={number}: expected auto or at most {most}; one process does this")
        return number


def count_gpus() -> int:
    """GPUs that nvidia-smi lists and CUDA_VISIBLE_DEVICES does not hide."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible == "" or shutil.which("nvidia-smi") is None:
        return 0
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False).stdout
    there = sum(line.startswith("GPU ") for line in listed.splitlines())
    if visible is None:
        return there
    count = 0
    for device in visible.split(","):  # CUDA ignores what follows one that is not there
        if not device.startswith(("GPU-", "MIG-")) and not (device.isdecimal() and int(device) < there):
            break
        count += 1
    return min(count, there)


def require_gpus(number: int) -> None:
    """Raise InputError where PyTorch sees fewer GPUs, before torchrun starts and shows tracebacks."""
    if number == 0 or dry_run():
        return
    import torch  # here, as it takes seconds to load

    if (found := torch.cuda.device_count()) < number:
        raise InputError(
            f"NUM_GPUS={number}, but PyTorch sees {found} GPUs here; set NUM_GPUS to that, or NUM_GPUS=0 for the CPU"
        )


def note(line: str) -> None:
    """Print a line on stderr, by the first of several processes alone."""
    if os.environ.get("RANK", "0") == "0":
        print(line, file=sys.stderr, flush=True)


def choose_model(environ: dict[str, str], models: Sequence[str], variables: Mapping[str, Sequence[str]]) -> str | None:
    """MODEL, else the one that alone has a variable that is set; None where none is.

    ``variables`` are the models that have each variable, where not all have it.

    Raises:
        OptionError: MODEL is none of ``models``, or does not have a variable that is set.
    """
    model = environ.get("MODEL") or None
    if model is not None and model not in models:
        raise OptionError(f"MODEL={shown(model)[1:-1]}: expected one of {' '.join(models)}")
    for name, owners in variables.items():
        if environ.get(name) and model is None and len(owners) == 1:
            (model,) = owners
            if model != "FastPitch":
                note(f"note: MODEL={model}, which alone has {name}; set MODEL for another")
    for name, owners in variables.items():
        if environ.get(name) and (model or "FastPitch") not in owners:
            owner = f"MODEL={', '.join(owners)}"
            value = shown(environ[name])[1:-1]
            raise OptionError(
                f"{name}={value}: not a variable of MODEL={model or 'FastPitch'}, but of {owner}; leave it out"
            )
    return model


def take_positions(environ: dict[str, str], words: Sequence[str]) -> list[str]:
    """Take the arguments of Jasper's original scripts that are no options as defaults of variables; the others.

    Raises:
        OptionError: they are of another model, or too many.
    """
    names, words = list(_POSITIONS), list(words)
    while words and not words[0].startswith("-"):
        word = words.pop(0)
        if environ.get("MODEL") != "Jasper":
            raise OptionError(
                f"{word}: expected options; only Jasper's scripts take {' '.join(_POSITIONS)}, so set variables instead"
            )
        if not names:
            raise OptionError(f"{word}: expected options after {' '.join(_POSITIONS)}")
        name = names.pop(0)
        if word and not environ.get(name) and not (name == "DATASET_PATH" and environ.get("DATA_DIR")):
            environ[name] = word
    config = environ.get("MODEL_CONFIG", "")
    if config and not (ROOT / config).exists() and (ROOT / "jasper" / config).exists():
        note(f"note: MODEL_CONFIG={config} is jasper/{config}")
        environ["MODEL_CONFIG"] = f"jasper/{config}"
    return words


def check_removed(environ: Mapping[str, str], removed: Mapping[str, str]) -> None:
    """Raise OptionError for a variable of the originals that no longer exists, unless it is off."""
    for name, answer in removed.items():
        if environ.get(name) and environ[name].lower() not in ("0", "false", "no", "off"):
            raise OptionError(f"{name}={shown(environ[name])[1:-1]}: of the original script; {answer}")


def dry_run() -> bool:
    """Whether commands are printed in place of being run."""
    return read_switch("DRY_RUN", os.environ.get("DRY_RUN") or "0")


def python() -> str:
    """The interpreter of commands, as it is named in them."""
    return os.environ.get("PYTHON") or sys.executable


def run_or_print(command: Sequence[str | Path]) -> None:
    """Run a command, or with DRY_RUN=1 print it; ends with its exit status where it fails."""
    words = [str(word) for word in command]
    if dry_run():
        print(shlex.join(words), flush=True)
    elif status := subprocess.run(words, check=False).returncode:
        raise SystemExit(status if status > 0 else 128 - status)


def exec_or_print(command: Sequence[str | Path]) -> None:
    """Run a command in this process's place, so that signals reach it, or with DRY_RUN=1 print it."""
    if dry_run():
        run_or_print(command)
        return
    sys.stdout.flush()
    words = [str(word) for word in command]
    os.execvp(words[0], words)


def newest_checkpoint(model: str) -> Path | None:
    """The newest checkpoint of a model in ./output, else in ./pretrained_models; None where there is none."""
    trained = [*Path("output").glob(f"{model}_checkpoint_*.pt")]
    return max(trained or downloaded(model), key=lambda path: path.stat().st_mtime, default=None)


def downloaded(model: str) -> list[Path]:
    """The checkpoints of a model that scripts/download_models.sh has put into ./pretrained_models, the newest first."""
    folder = Path("pretrained_models") / get_model(model).option
    kinds = (path for kind in ("*.pt", "g_*", "nvidia_*") for path in folder.rglob(kind))
    found = {path for path in kinds if path.is_file() and "discrim" not in path.name}
    return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)
