"""The command ``speech``: ``speech speak "Hello there."``; ``speech --help`` lists its subcommands."""
# PYTHON_ARGCOMPLETE_OK

import itertools
import os
import sys
from argparse import RawDescriptionHelpFormatter
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from common.cli import ArgumentParser, run
from common.errors import OptionError

if TYPE_CHECKING:
    from scripts.launch import Script


class Command(NamedTuple):
    """A subcommand of ``speech``: a module with the names of its function and of its parser's, or a script."""

    about: str
    module: str
    function: str = "main"
    parser: str = "build_parser"


_TOOLS = "scripts.checkpoint_tools"
COMMANDS = {
    "speak": Command("speak a text or a list of phrases", "inference", "speak"),
    "serve": Command("serve a voice over HTTP, with the studio", "serve"),
    "voices": Command("list voices, their languages and speakers", _TOOLS, "voices", "voices_parser"),
    "transcribe": Command("transcribe recordings", "inference", "transcribe", "build_recognition_parser"),
    "import": Command("make a corpus from your recordings", "scripts.import_recordings"),
    "prepare": Command("split a corpus into lists, and extract features", "prepare_dataset", ""),
    "train": Command("train a model", "train"),
    "finetune": Command("fine-tune a voice to a new one", "finetune_voice", ""),
    "evaluate": Command("measure how good a voice is", "scripts.evaluate_voice"),
    "export": Command(
        "write a network as ONNX, TorchScript or safetensors, or for Piper", _TOOLS, "export", "export_parser"
    ),
    "inspect": Command("describe a checkpoint or an exported file", _TOOLS, "inspect", "inspect_parser"),
    "strip": Command("reduce a checkpoint to what inference needs", _TOOLS, "strip", "strip_parser"),
    "convert": Command("convert a checkpoint from another toolkit", _TOOLS, "convert", "convert_parser"),
    "benchmark": Command("measure this machine", "benchmark", ""),
}


def speak(words: Sequence[str]) -> int | None:
    """Speak the text in the first argument, or whatever inference.py's options select."""
    import inference

    switches = list(itertools.takewhile(lambda word: word in ("--show", "--plain", "--quiet"), words))
    text, *others = [*words[len(switches) :], ""]
    if not text or text.startswith("-"):
        return inference.main(words)
    if others[0] and not others[0].startswith("-"):
        raise OptionError(f'{text} {others[0]}: put the text in quotes: speech speak "{text} {others[0]} ..."')
    return inference.main(["--text", text, *switches, *others[:-1]])


def transcribe(words: Sequence[str]) -> int | None:
    """Transcribe the recordings named first, with the newest recognizer unless one is named."""
    import inference
    from scripts.speaking import find_newest

    files = list(itertools.takewhile(lambda word: not word.startswith("-"), words))
    given = [*(["--input", *files] if files else []), *words[len(files) :]]
    if inference.named_recognizer(given) is None:
        given = ["--jasper", "CHECKPOINT" if "--help" in given else str(find_newest("Jasper")), *given]
    return inference.main(given)


def _script(name: str) -> "Script":
    from scripts.launch import load_scripts  # other subcommands don't need the scripts

    return load_scripts()[name]


def build_parser() -> ArgumentParser:
    """Return the parser of the first word."""
    lines = [f"  {name:<12}{one.about}" for name, one in COMMANDS.items()]
    about = "Speech synthesis and recognition. `speech COMMAND --help` shows the options of a command:"
    parser = ArgumentParser(
        prog="speech",
        usage="speech COMMAND [options]",
        description="\n".join([about, "", *lines]),
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND", help="one of these")
    return parser


def parser_of(name: str) -> ArgumentParser:
    """Return the parser of a subcommand."""
    command = COMMANDS[name]
    if not command.function:
        return _script(command.module).parser()
    return getattr(import_module(command.module), command.parser)()


def main(argv: Sequence[str] | None = None) -> int | None:
    """Run a subcommand, or after ``--variables`` a script, which also reads its settings from the environment."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["--variables"]:
        _script(words[1]).start(os.environ, words[2:])
        return 0
    if "_ARGCOMPLETE" in os.environ:
        _complete()
    command = COMMANDS[build_parser().parse_args(words[:1]).command]
    if command.function in ("speak", "transcribe"):
        return {"speak": speak, "transcribe": transcribe}[command.function](words[1:])
    if command.function:
        return getattr(import_module(command.module), command.function)(words[1:])
    _script(command.module).start({}, words[1:])
    return 0


def _complete() -> None:
    """Answer a shell's request for completions, and exit; does nothing if argcomplete isn't installed."""
    with suppress(ImportError):
        from argcomplete import autocomplete

        name = next(iter(os.environ["COMP_LINE"].split()[1:]), "")
        if name in COMMANDS:
            os.environ["_ARGCOMPLETE"] = "2"  # words before the options of the subcommand
        autocomplete(parser_of(name) if name in COMMANDS else build_parser())


def run_main() -> None:
    """Run the command ``speech``, as the installed program does."""
    if (name := "".join(sys.argv[1:2])) in COMMANDS:
        ArgumentParser.program = f"speech {name}"
    run(main, teardown=False)


if __name__ == "__main__":
    run_main()
