"""Write docs/OPTIONS.md: every option of the commands and every variable of the scripts, as the code has them.

python -m scripts.options_page            writes the page
python -m scripts.options_page --check    exit status 1 if the page is not as it would be written
"""

import argparse
import importlib
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import NoReturn
from unittest.mock import patch

from common.cli import ArgumentParser, run
from common.errors import InputError
from common.registry import available_models

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "OPTIONS.md"
UNTITLED = ("options", "positional arguments")  # argparse's own names of groups
BY_MODEL = "by model"
INTRODUCTION = """# Options

Written by `python -m scripts.options_page`; do not edit. Hyphens and underscores in options are alike; options cannot
be abbreviated, and unknown ones are refused.
"""
# What a variable means where its script does not say it.
VARIABLES = {
    "AMP": "`true`: mixed precision",
    "AUDIO": "`false`: measure the text-to-mel model only",
    "BATCH_SIZE": "batch size",
    "BS": "utterances in a micro-batch of one process",
    "CPU": "`true`: use the CPU even if there is a GPU",
    "CUDA": "`true`: use the GPU",
    "DATASET_PATH": "folder of the corpus",
    "DATASETS": "subsets of LibriSpeech to evaluate",
    "DENOISING": "strength of the denoiser; 0: none",
    "EMA": "`true`: use the EMA weights",
    "EPOCHS": "epochs in total",
    "EPOCHS_PER_CHECKPOINT": "epochs between checkpoints",
    "FEATURES": "`true`: features of FastPitch; `mels`: of Tacotron 2; `false`: lists; `auto`: what can be made",
    "FILELISTS": "folder for the lists",
    "FINE_TUNE_LR_FACTOR": "factor of the learning rate",
    "GRAD_ACCUMULATION": "micro-batches in an update",
    "HOLD_EPOCHS": "epochs at the full learning rate",
    "INPUT_MELS_DIR": "folder with the generator's mel-spectrograms",
    "LARGEST_BATCH": "`true`: find the largest batch that fits",
    "KL_LOSS_START_EPOCH": "epoch after which the binarization loss begins",
    "KL_LOSS_WARMUP_EPOCHS": "epochs in which its weight rises",
    "LEARNING_RATE": "learning rate",
    "LOAD_MEL_FROM_DISK": "`false`: the lists hold recordings",
    "MODEL": "model",
    "MODEL_CONFIG": "YAML file that configures Jasper",
    "N_TEST": "clips for testing",
    "N_WORKERS": "processes",
    "NNODES": "machines",
    "NUM_GPUS": "GPUs of each machine; 0: train on the CPU",
    "NUM_SPEAKERS": "speakers; `auto`: as many as the training list names",
    "OUTPUT_DIR": "folder for the results",
    "PHRASES": "list to speak",
    "PITCH_MEAN_STD": "pitch statistics (JSON); by default those of the training list",
    "SEED": "seed of everything random",
    "SPEAKER": "speaker, by name or number",
    "SYMBOL_SET": "`ipa` for phones in IPA; by default `arpabet` for phones",
    "TACOTRON2_CHECKPOINT": "a Tacotron 2 whose attention gives the durations",
    "TEST_IDS": "the same for testing",
    "TORCHSCRIPT": "`true`: compile the networks to TorchScript",
    "TRAIN_FILELIST": "list to train on",
    "TRAIN_MANIFESTS": "manifests, lists or folders to train on, separated by spaces",
    "VAL_FILELIST": "list to validate on",
    "VAL_IDS": "the same for validation",
    "VAL_MANIFEST": "manifest, list or folder to validate on",
    "VALIDATION_INTERVAL": "epochs between validations",
    "WARMUP": "batches before measuring",
    "WARMUP_EPOCHS": "epochs in which the learning rate rises",
    "WARMUP_STEPS": "updates in which the learning rate rises",
}
# Ways in which a script names a variable: with a default and perhaps a comment, exported with a default, in a table of
# options of train.py (a hyphen: set by the script itself) and of the models that have them, or for another script.
_ASSIGNED = re.compile(r'^ *: "\$\{(?P<name>\w+):=(?P<default>.*?)\}"(?:[ \t]*#\s*(?P<comment>.*))?$', re.MULTILINE)
_EXPORTED = re.compile(
    r"^export (?P<name>\w+)=\$\{(?P=name):-(?P<default>[^}]*)\}(?:[ \t]*#\s*(?P<comment>.*))?$", re.MULTILINE
)
_TABLED = re.compile(r"^(?P<name>[A-Z][A-Z_0-9]+) (?P<option>-|--[a-z-]+)(?P<models>( [A-Z][\w-]+)*)$", re.MULTILINE)
_PASSED = re.compile(r"(?<=\s)(?P<name>[A-Z][A-Z_]+)=(?P<default>[\w.]+)(?=\s)")


class _Captured(Exception):  # noqa: N818  (no error)
    """The parser whose help was asked for."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        super().__init__()
        self.parser = parser


def _capture(parser: argparse.ArgumentParser, file: object = None) -> NoReturn:
    raise _Captured(parser)


@cache
def parser_of(command: str) -> argparse.ArgumentParser:
    """The parser that `--help` after ``command`` describes: a module and the words that choose its options."""
    module, *words = command.split()
    with (
        patch.object(argparse.ArgumentParser, "print_help", _capture),
        patch.object(sys, "argv", [module, *words, "--help"]),
    ):
        try:
            importlib.import_module(module).main()
        except _Captured as captured:
            return captured.parser
    raise InputError(f"{command}: --help showed no options")


def module_of(script: str) -> str:
    """The module that a script of ``scripts/`` gives its arguments to."""
    found = re.search(r"-m (scripts\.[\w.]+)", (ROOT / "scripts" / script).read_text(encoding="utf-8"))
    if found is None:
        raise InputError(f"scripts/{script}: runs no module of scripts")
    return found[1]


@dataclass(frozen=True)
class Option:
    """An option as the page shows it."""

    names: tuple[str, ...]
    values: str  # what stands for its values, if it says
    default: str
    meaning: str
    group: str

    @property
    def row(self) -> str:
        names = ", ".join(f"`{name}`" for name in self.names)
        return f"| {names}{self.values and ' '}{self.values} | {self.default} | {self.meaning} |"


def options_of(command: str) -> list[Option]:
    """All options of a command but ``--help``, in the order of its help."""
    parser = parser_of(command)
    options = []
    for group in parser._action_groups:
        for action in group._group_actions:
            if action.help != argparse.SUPPRESS and not isinstance(action, argparse._HelpAction):
                options.append(_option(action, parser, group.title or ""))
    return options


def _option(action: argparse.Action, parser: argparse.ArgumentParser, group: str) -> Option:
    text = (action.help or "") % {**vars(action), "prog": parser.prog}
    default = "required" if action.required else _default(action)
    if not default and (bracketed := re.search(r"\s*\[([^\]]*)\]$", text)):  # the default of what a parser leaves open
        text, default = text[: bracketed.start()], "" if bracketed[1] == "None" else f"`{bracketed[1]}`"
    choices = [f"`{choice}`" for choice in action.choices or ()]
    if choices:
        text += f"{': ' if text else ''}{', '.join(choices)}"
    values = " ".join([action.metavar] if isinstance(action.metavar, str) else action.metavar or ())
    names = tuple(action.option_strings) or (action.dest.upper(),)
    return Option(names, values if action.option_strings else "", default, _escape(text), group)


def _default(action: argparse.Action) -> str:
    value = action.default
    if isinstance(value, bool):
        return "on" if value else "off"
    if value is None or value == [] or value == argparse.SUPPRESS:
        return ""
    words = value if isinstance(value, list | tuple) else [value]
    return f"`{' '.join(','.join(map(str, word)) if isinstance(word, tuple) else str(word) for word in words)}`"


def _escape(text: str) -> str:
    """Text of a table's cell, in which only backquotes mark anything up."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([|*<])", r"\\\1", part) for part in parts)


def tables(options: Iterable[Option], *, level: int, untitled: Iterable[str] = UNTITLED) -> str:
    """A table for each group, below a heading where the group has a title."""
    by_group: dict[str, list[Option]] = {}
    for option in options:
        by_group.setdefault("" if option.group in untitled else option.group, []).append(option)
    text = ""
    for group, members in by_group.items():
        text += f"\n{'#' * level} {_sentence(group)}\n" if group else ""
        text += "\n| option | default | meaning |\n| --- | --- | --- |\n"
        text += "".join(f"{option.row}\n" for option in members)
    return text


def _sentence(title: str) -> str:
    return title[:1].upper() + title[1:]


def training_section() -> str:
    """Options of train.py: those of all models, defaults that differ, and those that only some models have."""
    by_model = {model: options_of(f"train -m {model}") for model in available_models()}
    alike: dict[tuple[tuple[str, ...], str], dict[str, Option]] = {}  # one option of several models, by model
    for model, options in by_model.items():
        for option in options:
            alike.setdefault((option.names, option.meaning), {})[model] = option
    sections: dict[tuple[str, ...], list[Option]] = {}
    differing: list[tuple[str, dict[str, str]]] = []
    for (names, _), options_by_model in alike.items():
        first = next(iter(options_by_model.values()))
        defaults = {model: option.default for model, option in options_by_model.items()}
        if len({*defaults.values()}) > 1:
            differing.append((max(names, key=len), defaults))
            first = replace(first, default=BY_MODEL)
        sections.setdefault(tuple(options_by_model), []).append(first)
    text = "\n## train.py\n\n`train.py --model MODEL`; the scripts that call it are in [TRAINING.md](TRAINING.md).\n"
    everyone = tuple(by_model)
    for models in sorted(sections, key=lambda models: (-len(models), [everyone.index(model) for model in models])):
        title = "Options of all models" if models == everyone else f"Options of {' and '.join(models)}"
        own = [group for model in models for group in (model, re.sub(r"(\d)", r" \1", model))]
        text += f"\n### {title}\n" + tables(sections[models], level=4, untitled=(*UNTITLED, *own))
        if models == everyone:
            text += "\n#### Defaults by model\n\n"
            text += f"| option | {' | '.join(everyone)} |\n| --- |{' --- |' * len(everyone)}\n"
            for name, values in differing:
                text += f"| `{name}` | {' | '.join(values.get(model, '') for model in everyone)} |\n"
    return text


def command_section(title: str, command: str, about: str) -> str:
    """The options of a command that has but one set of them."""
    return f"\n## {title}\n\n{about}\n" + tables(options_of(command), level=3)


def variables_of(script: Path) -> dict[str, tuple[str, str]]:
    """Name -> default and meaning of each environment variable of a script."""
    text = script.read_text(encoding="utf-8")
    defaults: dict[str, list[str]] = {}
    meanings: dict[str, str] = {}
    for match in (*_ASSIGNED.finditer(text), *_EXPORTED.finditer(text)):
        name, default, comment = match.group("name", "default", "comment")
        meaning = _escape(comment) if comment else VARIABLES.get(name, "")
        if match.re is _EXPORTED and not meaning:  # of the libraries below, not of the script
            continue
        known = defaults.setdefault(name, [])
        if default and "$" not in default and default not in known:  # several: they depend on MODEL
            known.append(default)
        meanings[name] = meanings.get(name) or meaning
    for match in _TABLED.finditer(text):
        name, option, models = match.group("name", "option", "models")
        meaning = f"`{option}`" if option != "-" else VARIABLES.get(name, "")
        meanings[name] = f"{meaning} ({', '.join(models.split())})" if models else meaning
        defaults.setdefault(name, [])
    for command in re.findall(r"exec bash scripts/train\.sh ((?:.*\\\n)*.*)", text):
        of_training = variables_of(ROOT / "scripts" / "train.sh")
        for match in _PASSED.finditer(f" {command} "):
            defaults.setdefault(match["name"], [match["default"]])
            meanings.setdefault(match["name"], of_training[match["name"]][1])
    return {name: (" or ".join(f"`{value}`" for value in defaults[name]), meanings[name]) for name in defaults}


def variables_section() -> str:
    """A table for each script that reads variables."""
    text = """
## Variables of the scripts

Set in front of the command: `NUM_GPUS=1 bash scripts/train.sh`. Where no default is given, it is empty or depends on
other variables. `DRY_RUN=1` prints the command instead of running it; `PYTHON` names an interpreter to use instead of
that in `.venv`.
"""
    for script in sorted((ROOT / "scripts").glob("*.sh")):
        rows = variables_of(script)
        if rows and script.name != "lib.sh":
            text += f"\n### {script.name}\n\n| variable | default | meaning |\n| --- | --- | --- |\n"
            text += "".join(f"| `{name}` | {default} | {meaning} |\n" for name, (default, meaning) in rows.items())
    return text


def page() -> str:
    """The page as the code wants it."""
    text = INTRODUCTION + training_section()
    text += command_section("inference.py", "inference", "Text to speech, and mel-spectrograms to sound.")
    for model in available_models("recognizer"):
        option = model.lower()
        about = f"Speech to text with {model}."
        text += command_section(f"inference.py --{option}", f"inference --{option} CHECKPOINT", about)
    for title, command, about in (
        ("extract_mels.py", "extract_mels", "Features of a corpus, and reports on it."),
        (
            "extract_mels.py --checkpoint",
            "extract_mels --checkpoint CHECKPOINT",
            "Mel-spectrograms that a generator makes teacher-forced, to fine-tune a vocoder on.",
        ),
        ("scripts/evaluate_voice.sh", module_of("evaluate_voice.sh"), "Quality and speed of a voice."),
        ("scripts/quickstart.sh", module_of("quickstart.sh"), "A first voice in minutes."),
    ):
        text += command_section(title, command, about)
    return text + variables_section()


def main(argv: list[str] | None = None) -> int:
    """Write the page, or compare it."""
    parser = ArgumentParser(description="Write docs/OPTIONS.md from the parsers", prog="options_page.py")
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 if the page is stale")
    args = parser.parse_args(argv)
    if args.check:
        if not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != page():
            raise InputError(f"{PAGE}: not as the parsers are; run python -m scripts.options_page")
        return 0
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    run(main)
