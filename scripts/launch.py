"""What the scripts share: models and their variables, GPUs and processes, checkpoints, and commands run or printed."""

import ctypes
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common.cli import ArgumentParser
from common.errors import InputError, OptionError, shown
from common.options import add_options, option, option_of, options_of, read_switch, variables_of, words_of_variables
from common.signals import TerminatedError

ROOT = Path(__file__).resolve().parents[1]
SPEAKING = ("FastPitch", "Tacotron2", "HiFi-GAN", "WaveGlow", "Harmonic")
MODELS = (*SPEAKING, "Jasper")
JASPER = ("Jasper",)
# Utterances, or a vocoder's segments, in an update of the published runs: the least and the most.
GLOBAL_BATCHES = {
    "FastPitch": (256, 256),
    "HiFi-GAN": (128, 128),
    "Jasper": (512, 1024),
    "Tacotron2": (48, 1024),
    "WaveGlow": (4, 80),
    "Harmonic": (8, 8),
}
# Variables of the originals that no script here reads, and why.
REMOVED_EVERYWHERE = {
    "DALI_DEVICE": "recordings are read by processes on the CPU, not by DALI; leave it out",
    "DISTRIBUTED": "NUM_GPUS, and NNODES of several machines, say how many processes are started; leave it out",
}
# How Python starts torchrun. It leaves SIGHUP to the system: under nohup, training outlives a closed terminal.
TORCHRUN = ["-m", "torch.distributed.run", "--signals-to-handle", "SIGINT,SIGTERM,SIGQUIT"]
_POSITIONS = ("DATASET_PATH", "MODEL_CONFIG", "OUTPUT_DIR", "CHECKPOINT")  # arguments of Jasper's original scripts


@dataclass(frozen=True)
class Script:
    """A script: what it does with its variables and arguments, and what declares the variables.

    ``variables`` are dataclasses, with the models that have their variables (none: all); ``models`` are values of
    MODEL, the default first, of a script that reads it; ``calls`` is another script, whose variables apply too.
    """

    run: Callable[[dict[str, str], list[str]], None]
    variables: Mapping[type, Sequence[str]]
    models: Sequence[str] = ()
    removed: Mapping[str, str] = field(default_factory=dict)  # variables of the originals, and why they have gone
    calls: str | None = None
    of_model: Collection[str] = ()  # fields whose defaults the model decides

    def start(self, environ: dict[str, str], words: Sequence[str]) -> None:
        """Run with these variables and arguments, of which Jasper's positional ones are defaults of variables.

        Raises:
            OptionError: a variable has gone, or is of another model than MODEL.
        """
        check_removed(environ, REMOVED_EVERYWHERE | dict(self.removed))
        words = list(words)
        if self.models:
            model = choose_model(environ, self.models, models_of_variables(self.variables))
            environ["MODEL"] = model or self.models[0]
            words = take_positions(environ, words)
            if environ.get("MODEL_CONFIG") and "MODEL_CONFIG" in self.removed:
                note("note: MODEL_CONFIG is not read: the checkpoint holds the configuration")
        self.run(environ, words)


def models_of_variables(variables: Mapping[type, Sequence[str]]) -> dict[str, list[str]]:
    """The models that have each variable, where not all have it; ``variables`` are as in `Script`."""
    everywhere: set[str] = set()
    owners: dict[str, list[str]] = {}
    for kind, models in variables.items():
        for name in (name for _, _, known in options_of(kind) for name in variables_of(known)):
            if not models:
                everywhere.add(name)
            owners.setdefault(name, []).extend(model for model in models if model not in owners.get(name, []))
    return {name: models for name, models in owners.items() if name not in everywhere}


def variable(name: str, default: Any, help: str, **known: Any) -> Any:
    """A field of a dataclass that is a variable of scripts; ``known`` are fields of `common.options.Option`."""
    return option(default, help, variable=name, **known)


@dataclass(frozen=True)
class Gpus:
    """The GPUs of each machine that a script asks for."""

    num_gpus: str = variable("NUM_GPUS", "auto", "GPUs of each machine; auto: all there are; 0: the CPU")
    cpu: bool | None = variable("CPU", None, "older name of NUM_GPUS=0")
    cuda: bool | None = variable("CUDA", None, "older name of NUM_GPUS=1; false: of NUM_GPUS=0")

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
            raise OptionError(f"NUM_GPUS={number}: expected auto, 0 or {most}; one process does this")
        return number


@dataclass(frozen=True)
class Device(Gpus):
    """The GPU, precision and weights of a command of one process."""

    amp: bool = variable("AMP", False, "mixed precision")
    ema: bool | None = variable(
        "EMA", None, "true: the EMA weights; false: the raw ones; empty: EMA weights where there are any"
    )

    def flags(self) -> list[str]:
        """Switches of the command: ``--cuda --amp --ema``."""
        weights = [] if self.ema is None else ["--ema" if self.ema else "--no-ema"]
        return ["--cuda"] * self.number(1) + ["--amp"] * self.amp + weights


def given(**values: Any) -> list[Any]:
    """Options, by the names of their fields, whose values are not None."""
    return [word for name, value in values.items() if value is not None for word in (option_of(name), value)]


def passed_on(kind: type, environ: Mapping[str, str]) -> list[str]:
    """The words of a command line that the set variables of a dataclass stand for, whose fields are its options."""
    parser = ArgumentParser(add_help=False)
    add_options(parser, kind)
    return words_of_variables(parser, environ)


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


def choose_model(
    environ: Mapping[str, str], models: Sequence[str], variables: Mapping[str, Sequence[str]]
) -> str | None:
    """MODEL, else the one that alone has a variable that is set; None where none is.

    ``models`` are those to choose from, the default first; ``variables`` as from `models_of_variables`.

    Raises:
        OptionError: MODEL is none of ``models``, or does not have a variable that is set.
    """
    model = environ.get("MODEL") or None
    if model is not None and model not in models:
        raise OptionError(f"MODEL={shown(model)[1:-1]}: expected one of {' '.join(models)}")
    for name, owners in variables.items():
        if environ.get(name) and model is None and len(owners) == 1:
            (model,) = owners
            if model != models[0]:
                note(f"note: MODEL={model}, which alone has {name}; set MODEL for another")
    for name, owners in variables.items():
        is_on = environ.get(name, "").lower() not in ("", "0", "false", "no", "off")
        if is_on and (model or models[0]) not in owners:
            owner = f"MODEL={', '.join(owners)}"
            value = shown(environ[name])[1:-1]
            raise OptionError(
                f"{name}={value}: not a variable of MODEL={model or models[0]}, but of {owner}; leave it out"
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


def _end_with_script() -> None:
    """Ask Linux to send this process SIGTERM when its parent ends, whatever ends it."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def run_or_print(command: Sequence[str | Path]) -> None:
    """Run a command, or with DRY_RUN=1 print it; ends with its exit status where it fails."""
    words = [str(word) for word in command]
    if dry_run():
        print(shlex.join(words), flush=True)
        return
    sys.stdout.flush()
    child = subprocess.Popen(words, preexec_fn=_end_with_script)
    try:
        status = child.wait()
    except TerminatedError:
        raise
    except KeyboardInterrupt:
        child.wait()  # Ctrl-C reaches the command too, which may still save
        raise
    if status:
        raise SystemExit(status if status > 0 else 128 - status)


def exec_or_print(command: Sequence[str | Path]) -> None:
    """Run a command in this process's place, so that signals reach it, or with DRY_RUN=1 print it."""
    if dry_run():
        run_or_print(command)
        return
    sys.stdout.flush()
    words = [str(word) for word in command]
    os.execvp(words[0], words)


def print_next(what: str, command: Sequence[str | Path]) -> None:
    """Print a command to run next, as it can be pasted; ``what`` says what for, and may be empty."""
    words = []
    for word in map(str, command):
        variable = re.match(r"[A-Z_]+=", word)
        start = variable.end() if variable else 0
        words.append(word[:start] + shlex.quote(word[start:]))
    print(f"next{', ' * bool(what)}{what}: {' '.join(words)}", flush=True)
