"""Wrong values of options are refused in one line, by every parser of the project."""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from parsers import parser_of
from pydantic import ValidationError
from shell import ROOT
from training_setup import set_up

from common.cli import ArgumentParser, run
from common.errors import InputError, OptionError
from common.registry import available_models
from common.serving.schema import SpeechRequest
from common.text.prosody import LIMITS
from common.text.ssml import read_markup
from jasper.yaml_config import load_config
from scripts.checkpoint_tools import TOOLS

COMMANDS = [
    *(f"train -m {model}" for model in available_models()),
    *("inference", "inference --jasper CHECKPOINT", "serve", "extract_mels", "extract_mels --checkpoint CHECKPOINT"),
    *(
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in sorted(ROOT.glob("scripts/**/*.py"))
        if all(text in path.read_text() for text in ("ArgumentParser(", "def main(")) and path.stem[-5:] != "_page"
    ),
    *(f"scripts.checkpoint_tools {tool}" for tool in TOOLS),
]
NO_NUMBERS = ("nan", "-inf", "", "1,5", "0x10")
NO_TEXTS = ("",)


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


def test_no_parser_takes_what_is_no_number_or_no_text(capsys: pytest.CaptureFixture[str]):
    taken = []
    for parser, action in options():
        values = NO_NUMBERS if reads_numbers(action) else NO_TEXTS if action.type in (None, str, Path) else ()
        if isinstance(parser, ArgumentParser):
            taken += [(action.option_strings, one) for one in values if not refuses(parser, action, one, capsys)]
    assert taken == []


@pytest.mark.parametrize(
    ("model", "words", "message"),
    [
        ("FastPitch", "--mel-fmax 12000", "mel_fmax 12000.0 Hz: expected at most half the sampling rate, 11025 Hz"),
        ("WaveGlow", "-sr 8000 --mel-fmax 4001", "mel_fmax 4001.0 Hz: expected at most half the sampling rate"),
    ],
)
def test_no_band_ends_above_half_the_sampling_rate(tmp_path: Path, model: str, words: str, message: str):
    (tmp_path / "list.txt").write_text("wavs/a.wav|a\n")
    lists = ["--training-files", f"{tmp_path}/list.txt", "--validation-files", f"{tmp_path}/list.txt"]
    learned = ["--learned-alignment"] if model == "FastPitch" else []
    argv = ["--model", model, "-o", str(tmp_path), "-d", str(tmp_path), *lists, *learned, *words.split()]
    with pytest.raises(OptionError, match=re.escape(message)):
        set_up(*argv)


@pytest.mark.parametrize(
    ("model", "option"),
    [
        ("FastPitch", "--in-fft-conv1d-kernel-size"),
        ("FastPitch", "--pitch-embedding-kernel-size"),
        ("Tacotron2", "--encoder-kernel-size"),
        ("Tacotron2", "--attention-location-kernel-size"),
        ("Tacotron2", "--postnet-embedding-dim --postnet-kernel-size"),
    ],
)
def test_an_even_kernel_is_refused_by_the_parser(model: str, option: str, capsys: pytest.CaptureFixture[str]):
    option = option.split()[-1]
    with pytest.raises(SystemExit):
        parser_of(f"train -m {model}").parse_args([option, "4"])
    assert f"argument {option}: 4: expected an odd number" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["rate", "pitch", "volume"])
def test_a_control_has_one_range_in_options_requests_and_ssml(name: str, capsys: pytest.CaptureFixture[str]):
    field = {"rate": "speed"}.get(name, name)
    for value, factor in zip(LIMITS[name], (0.99, 1.01)):
        beyond = value * factor if value else -0.01
        assert getattr(SpeechRequest(**{"input": "a", field: value}), field) == value
        with pytest.raises(ValidationError, match=field):
            SpeechRequest(**{"input": "a", field: beyond})
        if name == "rate":
            parser_of("inference").parse_known_args(["--pace", str(value)])
            with pytest.raises(SystemExit):
                parser_of("inference").parse_known_args(["--pace", str(beyond)])
        if value:
            read_markup(f"<speak><prosody {name}='{100 * value:g}%'>a</prosody></speak>", where="a")
            with pytest.raises(InputError, match=f"factor of {name} from"):
                read_markup(f"<speak><prosody {name}='{100 * beyond:g}%'>a</prosody></speak>", where="a")


@pytest.mark.parametrize("labels", ["on, off", "1, 2", "~, a", "yes, b"])
def test_labels_that_yaml_reads_as_other_values_are_named(tmp_path: Path, labels: str):
    published = (ROOT / "jasper/configs/jasper_digits.yaml").read_text()
    kept = re.sub(r"^labels: .*(\n  .*)*", f"labels: [{labels}]", published, flags=re.MULTILINE)
    (tmp_path / "a.yaml").write_text(kept)
    with pytest.raises(InputError, match=r"a\.yaml: .*labels"):
        load_config(tmp_path / "a.yaml")
    (tmp_path / "a.yaml").write_text(kept.replace(labels, "' ', n, y, N, Y"))
    assert load_config(tmp_path / "a.yaml").model.labels == (" ", "n", "y", "N", "Y")


def test_an_error_is_one_line(capsys: pytest.CaptureFixture[str]):
    def fail() -> None:
        raise InputError("a.txt:1: red\nand a second line")

    with pytest.raises(SystemExit) as stop:
        run(fail)
    assert stop.value.code == 1
    assert capsys.readouterr().err == "error: a.txt:1: red and a second line\n"
