"""Lists the voices that are here: shipped, trained into ./output and downloaded into ./pretrained_models."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from common.cli import ArgumentParser
from common.errors import InputError


def build_parser() -> ArgumentParser:
    """The folders to look in."""
    parser = ArgumentParser(prog="speech voices", description="List voices with their languages and speakers")
    text = "where to look (default: the shipped voices, ./output and ./pretrained_models)"
    parser.add_argument("folders", type=Path, nargs="*", help=text)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line for each voice, of a training the last; exit status 1 if there is none."""
    folders = build_parser().parse_args(argv).folders
    from common.checkpoints.checkpoint import saved_checkpoints
    from common.checkpoints.loading import read_model
    from common.registry import available_models, get_model
    from common.synthesis.loading import VOICES
    from common.text.languages import language_of

    found = 0
    tops = map(Path, ("output", "pretrained_models"))
    for folder in folders or [VOICES, *(one for top in tops for one in sorted(top.rglob(".")))]:
        former = {path for model in available_models("generator") for path in saved_checkpoints(folder, model)[:-1]}
        for path in sorted(set(folder.glob("*")) - former):
            with suppress(InputError, OSError):  # any other file
                _, checkpoint = read_model(path)
                if get_model(checkpoint.model).role != "generator":
                    continue
                text = checkpoint.text
                speakers = ", ".join(text.speakers) if text and text.speakers else "one speaker"
                print(f"{path}: {checkpoint.model}, {language_of(text) if text else '-'}, {speakers}")
                found += 1
    return 0 if found else 1
