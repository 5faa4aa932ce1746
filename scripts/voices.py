"""Lists the voices that are here: shipped, trained into ./output and downloaded into ./pretrained_models."""

from collections.abc import Sequence
from pathlib import Path

from common.cli import ArgumentParser


def build_parser() -> ArgumentParser:
    """The folders to look in."""
    parser = ArgumentParser(prog="speech voices", description="List voices with their languages and speakers")
    text = "where to look (default: the shipped voices, ./output and ./pretrained_models)"
    parser.add_argument("folders", type=Path, nargs="*", help=text)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line for each voice; exit status 1 where there is none."""
    folders = build_parser().parse_args(argv).folders
    from common.synthesis.loading import VOICES
    from common.text.languages import language_of
    from scripts.checkpoint_tools import checkpoints_in

    places = folders or [
        VOICES,
        *(one for top in ("output", "pretrained_models") for one in sorted(Path(top).rglob("."))),
    ]
    found = 0
    for path, checkpoint in checkpoints_in(places, role="generator"):
        text = checkpoint.text
        speakers = ", ".join(text.speakers) if text and text.speakers else "one speaker"
        print(f"{path}: {checkpoint.model}, {language_of(text) if text else '-'}, {speakers}")
        found += 1
    return 0 if found else 1
