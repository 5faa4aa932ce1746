"""Every option of the published toolkits is accepted, or answered by one line that says what to do instead."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from test_documents import option_names

import extract_mels
import inference
from common.checkpoints.command_line import models_with
from common.cli import ArgumentParser
from common.errors import InputError
from common.extraction.options import teacher_forcing_parser
from common.registry import get_model
from common.training.options import build_training_parser

ORIGINALS = Path(__file__).resolve().parents[2] / "shared" / "originals" / "options.json"
TRAIN = ["-o", "out", "--training-files", "a.txt", "--validation-files", "b.txt"]
# Our command for the parsers of each published program. In an inference the models' parsers were read too.
PROGRAMS = {
    "train -m FastPitch": {
        "FastPitch 1.1": ("train.py", "fastpitch/arg_parser.py"),
        "FastPitch 1.0": ("train.py", "fastpitch/arg_parser.py"),
    },
    "train -m HiFi-GAN": {"HiFi-GAN": ("train.py", "hifigan/arg_parser.py")},
    "train -m Tacotron2": {"Tacotron 2": ("train.py", "tacotron2/arg_parser.py", "main.py")},
    "train -m WaveGlow": {"Tacotron 2": ("train.py", "waveglow/arg_parser.py", "main.py")},
    "train -m Jasper": {"Jasper": ("train.py",)},
    "inference": {
        "FastPitch 1.1": (
            *("inference.py", "models.py"),
            *("fastpitch/arg_parser.py", "hifigan/arg_parser.py", "waveglow/arg_parser.py"),
        ),
        "FastPitch 1.0": ("inference.py", "fastpitch/arg_parser.py", "waveglow/arg_parser.py"),
        "HiFi-GAN": ("inference.py", "models.py", "fastpitch/arg_parser.py", "hifigan/arg_parser.py"),
        "Tacotron 2": (
            *("inference.py", "inference_perf.py", "main.py"),
            *("tacotron2/arg_parser.py", "waveglow/arg_parser.py"),
        ),
    },
    "inference --jasper": {"Jasper": ("inference.py",)},
    "extract_mels": {
        "FastPitch 1.1": ("prepare_dataset.py",),
        "HiFi-GAN": ("prepare_dataset.py",),
        "FastPitch 1.0": ("extract_mels.py", "tacotron2/arg_parser.py"),
        "Tacotron 2": ("preprocess_audio2mel.py",),
    },
    "extract_mels --checkpoint": {"HiFi-GAN": ("fastpitch/extract_mels.py", "fastpitch/arg_parser.py")},
}


@cache
def parser_of(command: str) -> tuple[ArgumentParser, list[str]]:
    """The parser of one of our commands, and options that it requires."""
    if command.startswith("train"):
        return build_training_parser(get_model(command.split()[-1])), TRAIN
    return {
        "inference": lambda: (inference.build_parser(models_with("generator", "vocoder")), ["-i", "a.txt"]),
        "inference --jasper": lambda: (
            inference.build_recognition_parser(get_model("Jasper")),
            ["--jasper", "a.pt", "-i", "a.wav"],
        ),
        "extract_mels": lambda: (extract_mels.build_parser(), ["--wav-text-filelist", "a.txt"]),
        "extract_mels --checkpoint": lambda: (
            teacher_forcing_parser(),
            ["--checkpoint", "a.pt", "--filelist", "a.txt", "-o", "out"],
        ),
    }[command]()


def refusal(command: str, words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line with which a command ends by status 2, or nothing."""
    parser, required = parser_of(command)
    try:
        parser.parse_args([*required, *words])
    except InputError as error:  # of a file that the option names
        return str(error)
    except SystemExit as error:
        assert error.code == 2
        line = capsys.readouterr().err
        assert line.count("\n") == 1 and line.endswith("--help)\n")
        return line
    return ""


def words_of(option: dict[str, Any], name: str) -> list[str]:
    """The option as its own program took it: with a value unless it was a switch."""
    if str(option.get("action")).startswith("store_"):
        return [name]
    value = next((one for one in (*option.get("choices", ()), option.get("default")) if one not in (None, "")), "1")
    if isinstance(value, str) and "(" in value:  # an expression
        value = "0"
    return [name, *map(str, value if isinstance(value, list) else [value])]


@pytest.mark.skipif(not ORIGINALS.is_file(), reason=f"{ORIGINALS} is not there")
@pytest.mark.parametrize("command", PROGRAMS)
def test_each_option_of_the_published_parsers_is_accepted_or_answered(command: str, capsys: pytest.CaptureFixture[str]):
    originals = json.loads(ORIGINALS.read_text())
    unknown, n_options = {}, 0
    for toolkit, programs in PROGRAMS[command].items():
        options = next(found["options"] for name, found in originals.items() if name.startswith(toolkit))
        for option in (option for program in programs for option in options[program]):
            for name in option["names"]:
                n_options += 1
                if "unrecognized" in (line := refusal(command, words_of(option, name), capsys)):
                    unknown[name] = line
    assert n_options > 10
    assert unknown == {}


@pytest.mark.parametrize("command", PROGRAMS)
def test_published_options_are_read_as_the_options_that_replace_them(command: str, capsys: pytest.CaptureFixture[str]):
    parser, required = parser_of(command)
    table = parser.published
    own = option_names(f"{command} CHECKPOINT" if " --" in command else command)  # as docs/MIGRATING.md names it
    for name, replacement in table.items():
        if name in own:
            continue
        if replacement in own:
            alike = [
                refusal(command, [option, "1"], capsys).replace(name, replacement) for option in (name, replacement)
            ]
            assert alike[0] == alike[1]
            if not alike[0]:
                first, second = (parser.parse_args([*required, option, "1"]) for option in (name, replacement))
                assert first == second
        else:
            assert f"error: {name}: " in refusal(command, [name], capsys)
