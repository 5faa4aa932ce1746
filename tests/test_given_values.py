"""Wrong values of options are refused in one line, by every parser of the project."""

import argparse
from collections.abc import Iterator
from pathlib import Path

import pytest
from shell import ROOT

from common.cli import ArgumentParser, path_argument
from common.registry import available_models
from scripts.options_page import parser_of

COMMANDS = [
    *(f"train -m {model}" for model in available_models()),
    *("inference", "inference --jasper CHECKPOINT", "serve", "extract_mels", "extract_mels --checkpoint CHECKPOINT"),
    *(
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in sorted(ROOT.glob("scripts/**/*.py"))
        if "ArgumentParser(" in path.read_text() and not path.stem.endswith("_page")
    ),
]
NUMBERS = ("nan", "inf", "-inf", "-1", "1e300", "0", "1" + "0" * 20, "1" + "0" * 5000, "", "1,5", "0x10", "\0")
ZERO = "0 turns it off, or is a value like others"
# Values that an option takes though they are refused of most, and why.
ALLOWED = {
    ("--speaker-emb-weight", "-1"): "a factor, which published tools do not restrict",
    ("--speaker-emb-weight", "0"): "switches the speaker's embedding off",
    ("--grad-clip-thresh", "inf"): "no limit",
    ("--grad-clip-thresh", NUMBERS[7]): "is inf to Python",
    **{
        (f"--{control}-transform-{change}", value): "any direction"
        for control in ("pitch", "energy")
        for change in ("amplify", "shift")
        for value in ("-1", "0")
    },
    **{(option, value): "a shift" for option in ("--pitch-shift", "--energy-shift") for value in ("-1", "0")},
    ("--report-min-level", "-1"): "dB",
    **{
        (option, "0"): ZERO
        for option in """--seed --num-workers --length-buckets --epochs-this-job --minutes-per-checkpoint
        --steps-per-checkpoint --validation-steps --weight-decay --ema-decay --mel-fmin --adam-betas
        --msd-pooling-padding --warmup-steps --warmup-epochs --hold-epochs --min-lr
        --duration-predictor-loss-scale --pitch-predictor-loss-scale --energy-predictor-loss-scale --attn-loss-scale
        --kl-loss-weight --kl-loss-start-epoch --kl-loss-warmup-epochs --anneal-steps --attention-warning-epochs
        --guided-attention-weight --fade-out --denoising-strength --sigma-infer --port --iterations
        --max-utterances --pad-leading --trim-silence --report-min-seconds --report-max-clipping --report-min-level
        --max-queue-delay --pitch --n-val --n-test --threads""".split()
    },
}
TEXTS = ("", "a\0b", "\udcff")
PATHS = (*TEXTS, "x" * 256, "é" * 128, "a/" * 2100, "a\nb", "\x1b[31m")


def options() -> Iterator[tuple[ArgumentParser, argparse.Action]]:
    """Each option of each parser that takes a value of its own, once."""
    seen = set()
    for command in COMMANDS:
        parser = parser_of(command)
        for action in parser._actions:
            key = (*action.option_strings, action.type, action.nargs)
            if action.option_strings and action.nargs != 0 and not action.choices and key not in seen:
                seen.add(key)
                if action.help != argparse.SUPPRESS:
                    yield parser, action


def refuses(parser: ArgumentParser, action: argparse.Action, value: str, capsys: pytest.CaptureFixture[str]) -> bool:
    """Whether the parser does, in one line that names the option and does not repeat what cannot be shown."""
    option = max(action.option_strings, key=len)
    words = [f"{option}={value}"] if action.nargs != 2 else [option, value, value]
    monitored = argparse.Namespace()
    try:
        parser.parse_known_args(words, monitored)
    except SystemExit as stop:
        message = capsys.readouterr().err
        if not isinstance(parser, ArgumentParser):  # of a script that stands alone
            message = message[message.index("error: ") :]
        if "the following arguments are required" in message:
            return False
        assert stop.code == 2 and message.count("\n") == 1 and len(message) < 1300, message
        assert option in message and "\0" not in message and "\x1b" not in message
        return True
    return False


def reads_numbers(action: argparse.Action) -> bool:
    """Whether an option takes numbers."""
    if action.type in (None, str, Path):
        return False
    for word in ("1", "3", "0.5"):
        try:
            return isinstance(action.type(word), int | float)
        except (argparse.ArgumentTypeError, ValueError):
            continue
    return False


def test_no_parser_takes_a_number_that_cannot_be(capsys: pytest.CaptureFixture[str]):
    taken = {
        (max(action.option_strings, key=len), value)
        for parser, action in options()
        if reads_numbers(action)
        for value in NUMBERS
        if not (value.startswith("-") and action.nargs == 2) and not refuses(parser, action, value, capsys)
    }
    taken -= {(option, "0") for option, _ in taken if option.startswith("--p-")}  # probabilities
    assert sorted((option, value[:30]) for option, value in taken - ALLOWED.keys()) == []
    assert ALLOWED.keys() - taken == set(), "are refused after all"


def test_no_parser_takes_a_text_or_a_path_that_cannot_be(capsys: pytest.CaptureFixture[str]):
    taken = {
        (max(action.option_strings, key=len), value[:30])
        for parser, action in options()
        if isinstance(parser, ArgumentParser) and action.type in (None, str, Path)
        for value in (PATHS if action.type is Path else TEXTS)
        if not refuses(parser, action, value, capsys)
    }
    assert taken == set()
    assert path_argument("ein Ordner/é.wav") == Path("ein Ordner/é.wav")
