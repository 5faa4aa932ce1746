"""Options declared once: the command line, variables of scripts and values from files are read from one declaration."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from common.cli import ArgumentParser
from common.errors import OptionError
from common.options import add_options, group, option, read_options, words_of_variables


@dataclass(frozen=True)
class Sizes:
    """Options of a group."""

    kernel_size: int = option(3, "odd", odd=True, least=1)
    dropout: float = option(0.1, "probability", least=0, below=1, published=("--p-dropout",))


@dataclass(frozen=True)
class Job:
    """Options of all kinds."""

    output: Path | None = option(None, "folder", names=("-o",), writes=True)
    batch_size: int = option(32, "utterances", least=1, variable="BS", published=("--bs", "BATCH_SIZE"))
    keep: int | None = option(3, "checkpoints", least=1, words={"all": None}, variable="KEEP")
    amp: bool = option(False, "mixed precision", variable="AMP")
    tf32: bool = option(True, "on GPUs", variable="TF32")
    cleaners: tuple[str, ...] = option(("basic",), "in order", variable="CLEANERS", choices=("basic", "english"))
    rates: tuple[int, ...] = option((8, 2), "factors", least=1, empty=True, words={"none": ()})
    sizes: Sizes = group(Sizes, "sizes")
    n_symbols: int = 0  # no option


def parser_of(kind: type) -> ArgumentParser:
    parser = ArgumentParser(prog="job")
    add_options(parser, kind)
    return parser


def test_defaults_are_the_declared_ones_and_other_fields_are_given():
    assert read_options(parser_of(Job).parse_args([]), Job, n_symbols=7) == Job(n_symbols=7)


def test_words_become_values_of_the_fields_types():
    words = "-o out --bs 8 --keep all --amp --no-tf32 --cleaners basic english --kernel_size 5 --p-dropout 0".split()
    expected = Job(Path("out"), 8, None, True, False, ("basic", "english"), sizes=Sizes(5, 0.0))
    assert read_options(parser_of(Job).parse_args(words), Job) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--batch-size 0", "argument --batch-size: 0: expected a whole number of at least 1"),
        ("--batch-size 1.5", "argument --batch-size: 1.5: expected a whole number of at least 1"),
        ("--kernel-size 4", "argument --kernel-size: 4: expected an odd number of at least 1"),
        ("--dropout 1", "argument --dropout: 1: expected a number of at least 0 and below 1"),
        ("--dropout nan", "argument --dropout: nan: expected a number of at least 0 and below 1"),
        ("--keep none", "argument --keep: none: expected a whole number of at least 1, or all"),
        ("--cleaners french", "argument --cleaners: french: expected one of basic, english"),
    ],
)
def test_a_value_out_of_range_is_one_line_that_names_option_value_and_range(words, expected, capsys):
    with pytest.raises(SystemExit) as ended:
        parser_of(Job).parse_args(words.split())
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith(f"job: error: {expected} (see ")


def test_variables_are_read_as_the_options_that_declare_them():
    variables = {
        "BATCH_SIZE": "8",
        "KEEP": "all",
        "AMP": "true",
        "TF32": "false",
        "CLEANERS": "basic english",
        "BS": "",
    }
    words = words_of_variables(parser_of(Job), variables)
    assert words == "--batch-size 8 --keep all --amp --no-tf32 --cleaners basic english".split()


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"BS": "0"}, "BS=0: expected a whole number of at least 1"),
        ({"AMP": "often"}, "AMP=often: expected true or .*"),
        ({"BS": "8", "BATCH_SIZE": "16"}, "BS=8, BATCH_SIZE=16: one option; give only one"),
    ],
)
def test_variables_out_of_range_or_at_odds_are_named(variables: dict[str, str], expected: str):
    with pytest.raises(OptionError, match=f"^{expected}$"):
        words_of_variables(parser_of(Job), variables)
