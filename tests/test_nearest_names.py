"""A misspelled option gets the nearest name."""

import re

import pytest
from shell import ROOT, run_bash

import inference
from common.registry import get_model
from common.training.options import build_training_parser


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        ("--text Hi. --pase 2", "--pase: not an option of FastPitch, .*; did you mean --pace\\?"),
        ("--text Hi. --out_put a.wav", "--out-put: not an option of .*; did you mean --output\\?"),
        ("--text Hi. --frobnicate", "--frobnicate: not an option of [^;]* \\("),
        ("--text Hello there", "there: not an option of .*; put a text or a name of several words in quotes"),
    ],
)
def test_an_unknown_option_gets_the_nearest_name(words: str, advice: str, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit) as exit:
        inference.main(words.split())
    assert exit.value.code == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert re.search(advice, line), line


def test_an_option_of_the_originals_gets_its_answer_alone(capsys: pytest.CaptureFixture) -> None:
    for words in ("--text Hi. --n-speakers 2", "--text Hi. --max-wav-value 1"):
        with pytest.raises(SystemExit):
            inference.main(words.split())
    for words in ("--pitch-std 60", "--load-mel-from-disk"):
        with pytest.raises(SystemExit):
            build_training_parser(get_model("FastPitch")).parse_args(words.split())
    said = capsys.readouterr().err
    assert said.count("\n") == 4 and "mean --" not in said


def test_speak_asks_for_quotes_around_several_words() -> None:
    done = run_bash(ROOT / "scripts/speak.sh", "Hello", "there")
    assert done.returncode == 2
    assert done.stderr.startswith('error: Hello there: put the text in quotes: speech speak "Hello there ')
