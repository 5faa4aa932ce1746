"""Shared parts of the scripts: settings, GPUs, and running or printing commands."""

import argparse
import ctypes
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from common.cli import ArgumentParser
from common.errors import InputError, OptionError, shown
from common.files import read_lines
from common.options import (
    Option,
    add_options,
    option,
    option_of,
    options_of,
    read_options,
    read_switch,
    variables_of,
    words_of_value,
    words_of_variables,
)
from common.registry import get_model

ROOT = Path(__file__).resolve().parents[1]
MODELS = ("FastPitch", "Tacotron2", "HiFi-GAN", "WaveGlow", "Harmonic", "Jasper")
# Utterances (segments for a vocoder) in each update of the published runs, if all of them agree.
GLOBAL_BATCHES = {"FastPitch": 256, "HiFi-GAN": 128, "Harmonic": 8}
_OF_GETTEXT = re.compile(".*[_:.@].*|C|POSIX")  # a LANGUAGE that isn't an eSpeak NG tag: en_US:en, C.UTF-8
LIBRISPEECH_FOLDER = Path("LibriSpeech")
DATASET_PATH = "DATASET_PATH DATASET_DIR DATA_DIR"
_POSITIONS = ("DATASET_PATH", "MODEL_CONFIG", "OUTPUT_DIR", "CHECKPOINT")  # arguments of Jasper's original scripts


def setting(variables: str, default: Any, help: str, **known: Any) -> Any:
    """Declare a script's option that is also a variable; ``variables`` are its name, then those in the originals."""
    name, *published = variables.split()
    return option(default, help, variable=name, published=tuple(published), **known)


@dataclass(frozen=True)
class GpuSettings:
    """The GPUs that a script uses."""

    num_gpus: str = setting("NUM_GPUS", "auto", "GPUs of each machine; auto: all; 0: the CPU")
    cpu: bool = setting("CPU", False, "older name for NUM_GPUS=0")
    cuda: bool | None = setting("CUDA", None, "older name for NUM_GPUS=1; false: for NUM_GPUS=0")
    model: str = ""  # one of those that a script supports


@dataclass(frozen=True)
class Given:
    """What a script was started with, besides its own settings."""

    passed: list[str]  # options of its program, from variables
    words: list[str]  # the other arguments
    environ: Mapping[str, str]

    @property
    def options(self) -> list[str]:
        """All options and arguments of its program."""
        return [*self.passed, *self.words]


@dataclass(frozen=True)
class Script:
    """A script: its settings, the options of its program for a model, and the function that runs it.

    ``defaults`` are words NAME=value by model; those of "" apply to all. Without MODEL, the model is that of the first
    variable in ``model_of`` that is set, else the first of ``models``: several original scripts have the same name.
    """

    own: type = GpuSettings
    programs: Callable[[str], Sequence[type]] = lambda model: ()
    models: Sequence[str] = ()
    defaults: Mapping[str, str] = field(default_factory=dict)
    model_of: Mapping[str, str] = field(default_factory=dict)
    takes_words: bool = True  # arguments besides its settings
    name: str = ""
    run: Callable[[Any, Given], None] = lambda own, given: None

    def __call__(self, run: Callable[[Any, Given], None]) -> "Script":
        """Register a function as the script of its name."""
        SCRIPTS[run.__name__] = replace(self, name=run.__name__, run=run)
        return SCRIPTS[run.__name__]

    def default_variables(self, model: str) -> dict[str, str]:
        """Return the default variables of a model's runs."""
        words = shlex.split(f"{self.defaults.get('', '')} {self.defaults.get(model, '')}")
        return dict(word.split("=", 1) for word in words)

    def declarations(self, model: str) -> Iterator[tuple[str, Option, Any]]:
        """Yield name, declaration and default of each option that has a variable, the script's own first."""
        recipe = get_model(model).arg_parser.RECIPE if model in MODELS else None
        for kind in (self.own, *self.programs(model)):
            for name, _, known in options_of(kind):
                if known.variable is not None:
                    yield name, known, getattr(recipe if type(recipe) is kind else kind, name, None)

    def start(self, environ: Mapping[str, str], words: Sequence[str]) -> None:
        """Run with these variables and arguments; raise OptionError for a removed variable or an invalid value.

        Leading NAME=value arguments are defaults of variables, as are Jasper's positional arguments.
        """
        environ, words = dict(environ), list(words)
        if _OF_GETTEXT.fullmatch(environ.get("LANGUAGE", "")):
            del environ["LANGUAGE"]
        model = self._model(environ, words) if self.models else ""
        for name, scripts, reason in removed_variables():
            value = environ.pop(name, "") if {self.name, f"{self.name}/{model}", "all"} & {*scripts.split()} else ""
            if value.lower() not in ("", "0", "false", "no", "off"):
                raise OptionError(f"{name}={shown(value)[1:-1]}: a variable of the original script; {reason}")
        defaults = self.default_variables(model)
        while words and re.match("[A-Z_0-9]+=", words[0]):
            name, _, defaults[name] = words.pop(0).partition("=")
        for name in _POSITIONS if model == "Jasper" else ():
            if words and not words[0].startswith("-"):
                defaults[name] = words.pop(0) or defaults.get(name, "")
        groups = [variables_of(known) for _, known, _ in self.declarations(model)]  # of the same option
        for name, value in defaults.items():
            same = {other for group in groups if name in group for other in group}
            if not any(map(environ.get, same | {name})):
                environ[name] = value
        if (config := environ.get("MODEL_CONFIG", "")).startswith("configs/"):  # as the original calls it
            environ["MODEL_CONFIG"] = f"jasper/{config}"
        parser = self.parser(model)
        args, rest = parser.parse_known_args([*words_of_variables(parser, environ), *words])
        if rest and not self.takes_words:
            parser.error(f"unrecognized arguments: {' '.join(rest)}")
        own = {name for _, _, known in options_of(self.own) for name in variables_of(known)}
        others = {name: value for name, value in environ.items() if name not in own}
        given = Given(words_for(others, *self.programs(model)), rest, environ)
        self.run(read_options(args, self.own, model=model), given)

    def _model(self, environ: Mapping[str, str], words: Sequence[str]) -> str:
        choice = ArgumentParser(add_help=False)
        choice.add_argument("-m", "--model", default=environ.get("MODEL"))
        model = choice.parse_known_args(words)[0].model
        if not model:
            model = next((one for name, one in self.model_of.items() if environ.get(name)), self.models[0])
            if self.model_of:
                note(f"note: MODEL={model}; set it for another of {' '.join(self.models)}")
        if model not in self.models:
            raise OptionError(f"MODEL={shown(model)[1:-1]}: expected one of {' '.join(self.models)}")
        return model

    def parser(self, model: str = "") -> ArgumentParser:
        """Return the parser of the script's own settings; ``--help`` also lists its program's variables."""
        lines = {"": "Variables, set in front of the script as NAME=value:"}
        model = model or (*self.models, "")[0]
        chosen = self.default_variables(model)
        for _, known, default in self.declarations(model):
            value = "" if default in (None, (), False) else str(words_of_value(default)).lower()
            setting = f"{known.variable}={chosen.get(str(known.variable), value)}"
            lines.setdefault(str(known.variable), f"  {setting:<32}  {known.help}")
        layout = argparse.RawDescriptionHelpFormatter
        parser = ArgumentParser(prog=f"{self.name}.sh", epilog="\n".join(lines.values()), formatter_class=layout)
        if self.models:
            parser.add_argument("-m", "--model", choices=self.models, help="model, also set by MODEL")
        add_options(parser, self.own)
        return parser


def removed_variables() -> list[list[str]]:
    """Return the removed variables of the original scripts: name, scripts (for one model: script/model), reason."""
    return [line.split("\t") for line in read_lines(ROOT / "scripts/removed_variables.tsv")]


def words_for(environ: Mapping[str, str], *kinds: type) -> list[str]:
    """Return the options of these dataclasses that variables set, as command-line words."""
    parser = ArgumentParser(add_help=False)
    for kind in kinds:
        add_options(parser, kind)
    return words_of_variables(parser, environ)


SCRIPTS: dict[str, Script] = {}  # filled when their modules are imported


def load_scripts() -> dict[str, Script]:
    """Return all scripts by name."""
    for module in ("benchmarking", "corpora", "speaking", "training"):
        import_module(f"scripts.{module}")
    return SCRIPTS


def options(**values: Any) -> list[Any]:
    """Return command-line words for the options whose values aren't None."""
    return [word for name, value in values.items() if value is not None for word in (option_of(name), value)]


def number_of_gpus(own: GpuSettings, most: int = sys.maxsize) -> int:
    """Return the number of GPUs to use on each machine; raise OptionError if it's invalid or above ``most``."""
    if own.cpu or own.cuda is False:
        return 0
    if own.num_gpus == "auto":
        return min(1 if own.cuda else count_gpus(), most)
    if not own.num_gpus.isdecimal():
        raise OptionError(f"NUM_GPUS={shown(own.num_gpus)[1:-1]}: expected auto or a whole number")
    if int(own.num_gpus) > most:
        raise OptionError(f"NUM_GPUS={own.num_gpus}: expected auto, 0 or {most}; this runs in one process")
    return int(own.num_gpus)


def gpu_option(own: GpuSettings) -> list[str]:
    """Return ``--cuda`` for a single-process command if a GPU is used; raise OptionError for several GPUs."""
    return ["--cuda"] * number_of_gpus(own, 1)


def count_gpus() -> int:
    """Count the GPUs that nvidia-smi lists and CUDA_VISIBLE_DEVICES doesn't hide."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible in ("", "-1") or shutil.which("nvidia-smi") is None:
        return 0
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False).stdout
    there = sum(line.startswith("GPU ") for line in listed.splitlines())
    return there if visible is None else min(there, len(visible.split(",")))


def note(line: str) -> None:
    """Print a line on stderr."""
    print(line, file=sys.stderr, flush=True)


def dry_run() -> bool:
    """Return whether commands are printed instead of run."""
    return read_switch("DRY_RUN", os.environ.get("DRY_RUN") or "0")


def shipped(path: str) -> Path:
    """Return a file of the toolkit, relative if the current folder has it."""
    return Path(path) if Path.cwd() == ROOT or Path(path).exists() else ROOT / path


def librispeech_manifest(corpus: Path, subset: str) -> Path:
    """Return the manifest that scripts/preprocess_librispeech.sh writes for a subset of LibriSpeech."""
    return corpus / f"librispeech-{subset}-wav.json"


def program(name: str) -> list[str | Path]:
    """Return the words that start a program of the toolkit, such as inference.py or `speech_toolkit evaluate`."""
    python = os.environ.get("PYTHON") or sys.executable
    return [python, shipped(name)] if name.endswith(".py") else [python, "-m", *name.split()]


def require(path: Path, message: str) -> Path:
    """Return the path; unless this is a dry run, raise InputError with ``message`` if it doesn't exist."""
    if not path.exists() and not dry_run():
        raise InputError(f"{path}: {message}")
    return path


def run_or_print(command: Sequence[str | Path]) -> None:
    """Run a command, or print it in a dry run. If it fails, exit with its status."""
    words = [str(word) for word in command]
    if dry_run():
        print(shlex.join(words), flush=True)
        return
    sys.stdout.flush()
    # PR_SET_PDEATHSIG: Linux sends the command SIGTERM when this process ends for any reason.
    child = subprocess.Popen(words, preexec_fn=lambda: ctypes.CDLL(None).prctl(1, signal.SIGTERM))
    try:
        status = child.wait()
    except KeyboardInterrupt as stop:
        if signal.SIGINT in stop.args:
            child.wait()  # Ctrl-C reaches the command too, which may still save
        raise
    if status:
        raise SystemExit(status if status > 0 else 128 - status)


def exec_or_print(command: Sequence[str | Path]) -> None:
    """Replace this process with a command, so that signals reach it, or print it in a dry run."""
    if dry_run():
        run_or_print(command)
        return
    sys.stdout.flush()
    words = [str(word) for word in command]
    os.execvp(words[0], words)


def print_next(what: str, variables: Mapping[str, object], script: str, *words: object) -> None:
    """Print the command to run next, ready to paste; ``what`` says what it's for and may be empty."""
    settings = [f"{name}={shlex.quote(str(value))}" for name, value in variables.items()]
    command = [*settings, "bash", *(shlex.quote(str(word)) for word in (shipped(f"scripts/{script}.sh"), *words))]
    print(f"next{', ' * bool(what)}{what}: {' '.join(command)}", flush=True)
