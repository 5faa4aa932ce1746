"""Lists of the Free Spoken Digit Dataset to train on and to test with, split by take as its authors do.

    python -m scripts.datasets.make_digits_lists fsdd output/digits

writes ``train.txt`` (takes 5 and up) and ``test.txt`` (takes 0 to 4) of lines ``7_george_12.wav|seven``, relative to
``fsdd/recordings``.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from common.cli import ArgumentParser, run
from common.errors import InputError
from common.files import write_text

WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
N_TEST = 5  # takes of each digit and speaker
NAME = re.compile(r"(\d)_([a-z]+)_(\d+)\.wav")


def main(argv: Sequence[str] | None = None) -> int:
    """Write both lists."""
    parser = ArgumentParser(prog="make_digits_lists", description="make lists of the Free Spoken Digit Dataset")
    parser.add_argument("dataset", type=Path, help="folder that holds recordings/<digit>_<speaker>_<take>.wav")
    parser.add_argument("output", type=Path, help="folder for train.txt and test.txt")
    args = parser.parse_args(argv)
    recordings = args.dataset / "recordings"
    lines: dict[str, list[str]] = {"train": [], "test": []}
    for path in sorted(recordings.glob("*.wav")):
        found = NAME.fullmatch(path.name)
        if found is None:
            raise InputError(f"{path}: expected a name like 7_george_12.wav, of digit, speaker and take")
        digit, _, take = found.groups()
        lines["test" if int(take) < N_TEST else "train"].append(f"{path.name}|{WORDS[int(digit)]}")
    for name, own in lines.items():
        if not own:
            raise InputError(f"{recordings}: no recordings to {name} on; expected takes from 0 to 49 of each digit")
        write_text(args.output / f"{name}.txt", "\n".join(own) + "\n")
        print(f"{args.output / name}.txt: {len(own)} recordings")
    return 0


if __name__ == "__main__":
    run(main)
