"""Writes the lists that the shipped voice and vocoder are trained on, of recordings and of embedded speakers.

    python -m scripts.datasets.voice_lists -o output/voices/data --recordings LJSpeech-1.1 \
        --embedded us=output/voices/embedded gb=output/voices/embedded_gb

The vocoder's lists are relative to the folder itself, where links lead to the recordings; half of each embedded corpus
is enough for it, and the recordings are repeated until they are about six tenths of the list. Clips that are held back
are in no list but ``held_back.txt``, for ``scripts/evaluate_voice.sh``.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from common.cli import ArgumentParser, run
from common.errors import InputError
from common.files import read_lines, write_text, writing
from scripts.datasets.make_corpus import TRAIN, VALIDATION

HELD_BACK = tuple(f"LJ001-{number:04d}" for number in range(73, 81))
_N_VALIDATION = 2  # lines of the voice's validation list, which are also trained on: the curves show nothing new


def transcripts(folder: Path, *, held_back: Sequence[str]) -> list[str]:
    """Lines ``wavs/x.wav|text`` of a corpus in LJSpeech's layout, with the normalized text where there is one.

    Raises InputError if nothing is left.
    """
    rows = [line.split("|") for line in read_lines(folder / "metadata.csv")]
    lines = [f"wavs/{row[0]}.wav|{row[-1]}" for row in rows if len(row) > 1 and row[0] not in held_back]
    if len(lines) < _N_VALIDATION:
        raise InputError(f"{folder}/metadata.csv: {len(lines)} clips to train on, expected {_N_VALIDATION} or more")
    return lines


def recordings_of(lines: Sequence[str], *, name: str) -> list[str]:
    """The recordings of a list, under the link ``name``."""
    return [line.partition("|")[0].replace("wavs/", f"wavs/{name}/", 1) for line in lines]


def vocoder_list(recordings: Sequence[str], embedded: Sequence[str]) -> list[str]:
    """Recordings, repeated where they are few to be about six tenths, and embedded speech."""
    times = max(1, 3 * len(embedded) // (2 * len(recordings)))
    return [*recordings * times, *embedded]


def _link(path: Path, target: Path) -> None:
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.symlink_to(target.resolve())


def _named_folder(text: str) -> tuple[str, Path]:
    name, _, folder = text.partition("=")
    if not name.isidentifier() or not folder:
        raise argparse.ArgumentTypeError(f"{text}: expected a name and a folder, as us=output/embedded")
    return name, Path(folder)


def main(argv: Sequence[str] | None = None) -> None:
    """Write the lists."""
    parser = ArgumentParser(description="Write the lists of the shipped voice and vocoder", prog="voice_lists.py")
    add = parser.add_argument
    add("-o", "--output", type=Path, required=True, help="folder of the lists, and of the links to the recordings")
    add("--recordings", type=Path, required=True, help="corpus in LJSpeech's layout: wavs/ and metadata.csv")
    text = "corpora of make_corpus, and what each is to be called"
    add("--embedded", type=_named_folder, nargs="+", required=True, metavar="NAME=FOLDER", help=text)
    text = "speakers of the first of them that the voice begins with"
    add("--speakers", nargs="+", default=["p75", "p99"], help=text)
    add("--held-back", nargs="*", default=HELD_BACK, help="recordings for measuring (default: LJ001-0073 to 0080)")
    args = parser.parse_args(argv)
    lines = transcripts(args.recordings, held_back=args.held_back)
    _link(args.output / "wavs" / "lj", args.recordings / "wavs")
    spoken, validation = [], []
    for name, folder in args.embedded:
        _link(args.output / "wavs" / name, folder / "wavs")
        spoken += recordings_of(read_lines(folder / TRAIN), name=name)[::2]
        validation += recordings_of(read_lines(folder / VALIDATION), name=name)
    n_first = len(read_lines(args.embedded[0][1] / VALIDATION))
    lists = {
        "vocoder_train.txt": vocoder_list(recordings_of(lines, name="lj"), spoken),
        "vocoder_val.txt": validation[:n_first:10],
        "lj_train.txt": lines,
        "held_back.txt": [line for line in transcripts(args.recordings, held_back=()) if line not in lines],
        "lj_val.txt": lines[:_N_VALIDATION],
    }
    for name, file in (("base_train.txt", TRAIN), ("base_val.txt", VALIDATION)):
        every = read_lines(args.embedded[0][1] / file)
        lists[name] = [line for line in every if line.rpartition("|")[2] in args.speakers]
    for name, rows in lists.items():
        write_text(args.output / name, "".join(f"{row}\n" for row in rows))


if __name__ == "__main__":
    run(main)
