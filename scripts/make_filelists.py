"""Splits a corpus in LJSpeech's layout into lists of recordings for training, validation and testing.

    python -m scripts.make_filelists -d LJSpeech-1.1 -o filelists --name ljs --n-val 100 --n-test 500

Each list has lines ``wavs/<clip>.wav|<transcript>``, with the normalised transcript where the corpus has one.
"""

import argparse
import random
from collections.abc import Iterable
from pathlib import Path

from common.cli import ArgumentParser, non_negative_int, run
from common.errors import InputError
from common.files import write_text

SPLITS = ("train", "val", "test")


def read_metadata(path: Path) -> dict[str, str]:
    """Clip -> transcript of a ``metadata.csv`` with lines ``clip|transcript[|normalised transcript]``.

    Raises InputError, naming the line, for another number of columns, an empty field or a clip listed twice.
    """
    transcripts: dict[str, str] = {}
    for number, line in enumerate(_read_lines(path), 1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        fields = [field.strip() for field in line.split("|")]
        if len(fields) not in (2, 3):
            raise InputError(f"{where}: {len(fields)} columns, expected clip|transcript[|normalised transcript]")
        if not fields[0] or not fields[-1]:
            raise InputError(f"{where}: the {'transcript' if fields[0] else 'clip'} is empty")
        if fields[0] in transcripts:
            raise InputError(f"{where}: {fields[0]} is listed twice")
        transcripts[fields[0]] = fields[-1]
    if not transcripts:
        raise InputError(f"{path}: lists no clips")
    return transcripts


def split_clips(
    clips: Iterable[str], *, chosen: dict[str, list[str]], n_val: int, n_test: int, seed: int
) -> dict[str, list[str]]:
    """The clips of each split, in order.

    ``chosen`` holds the splits that are given; the others are drawn from the rest, the same ones each time for the
    same clips and ``seed``, and training takes what is left. Raises InputError if that is nothing.
    """
    taken = {clip for names in chosen.values() for clip in names}
    rest = sorted(set(clips) - taken)
    random.Random(seed).shuffle(rest)
    splits = dict(chosen)
    for split, size in (("val", n_val), ("test", n_test)):
        if split not in chosen:
            splits[split], rest = rest[:size], rest[size:]
    splits.setdefault("train", rest)
    if not splits["train"]:
        raise InputError(
            f"no clips are left to train on: {len(splits['val'])} go to validation and {len(splits['test'])} to testing"
        )
    return {split: splits[split] for split in SPLITS}


def read_chosen(paths: dict[str, Path | None], transcripts: dict[str, str]) -> dict[str, list[str]]:
    """The clips that files of one name on each line put into splits; each must be in the corpus, and once."""
    chosen: dict[str, list[str]] = {}
    seen: dict[str, str] = {}
    for split, path in paths.items():
        if path is None:
            continue
        chosen[split] = []
        for number, line in enumerate(_read_lines(path), 1):
            clip, where = line.strip(), f"{path}:{number}"
            if not clip:
                continue
            if clip not in transcripts:
                raise InputError(f"{where}: {clip} is not in the corpus's metadata.csv")
            if clip in seen:
                raise InputError(f"{where}: {clip} stands already in {seen[clip]}")
            seen[clip] = where
            chosen[split].append(clip)
    return chosen


def recording(folder: Path, clip: str) -> str:
    """Path of a clip's recording within the corpus: ``wavs/<clip>.wav``, or ``.flac``."""
    for suffix in (".wav", ".flac"):
        name = f"wavs/{clip.removesuffix(suffix)}{suffix}"
        if (folder / name).is_file():
            return name
    raise InputError(f"{folder / 'wavs' / clip}.wav: no such file, but metadata.csv lists it")


def _read_lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as UTF-8 text ({error})") from error


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = ArgumentParser(description="split a corpus in LJSpeech's layout into filelists")
    parser.add_argument("-d", "--dataset-path", type=Path, required=True, help="folder of metadata.csv and wavs/")
    parser.add_argument("-o", "--output", type=Path, default=Path("filelists"), help="folder of the lists")
    parser.add_argument("--name", default="ljs", help="first part of the lists' names")
    parser.add_argument("--n-val", type=non_negative_int, default=100, help="clips to validate on")
    parser.add_argument("--n-test", type=non_negative_int, default=500, help="clips to test on")
    parser.add_argument("--seed", type=int, default=1234, help="of the draw")
    for split in SPLITS:
        parser.add_argument(f"--{split}-ids", type=Path, help=f"file with the {split} clips, one a line")
    return parser.parse_args()


def main() -> int:
    """Write the lists."""
    args = parse_args()
    transcripts = read_metadata(args.dataset_path / "metadata.csv")
    chosen = read_chosen({split: getattr(args, f"{split}_ids") for split in SPLITS}, transcripts)
    splits = split_clips(transcripts, chosen=chosen, n_val=args.n_val, n_test=args.n_test, seed=args.seed)
    texts = {
        split: "".join(f"{recording(args.dataset_path, clip)}|{transcripts[clip]}\n" for clip in clips)
        for split, clips in splits.items()
    }
    for split, text in texts.items():
        if text:
            path = args.output / f"{args.name}_audio_text_{split}_filelist.txt"
            write_text(path, text)
            print(f"{path}: {len(splits[split])} clips")
    return 0


if __name__ == "__main__":
    run(main)
