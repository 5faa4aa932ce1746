"""Splits a corpus in LJSpeech's layout into lists of recordings for training, validation and testing.

    python -m scripts.datasets.make_filelists -d LJSpeech-1.1 -o filelists --name ljs --n-val 100 --n-test 500

A list of texts has lines ``wavs/<clip>.wav|<transcript>``, with the normalized transcript where the corpus has one; a
list of recordings has the first column alone, which is all that a vocoder needs. A folder of recordings without
``metadata.csv`` gets the latter kind only.
"""

import itertools
import random
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from common.cli import ArgumentParser, run
from common.errors import InputError, OptionError, shown
from common.files import read_lines, write_text
from common.options import add_options, option, read_options

SPLITS = ("train", "val", "test")
SUFFIXES = (".wav", ".flac")


def read_metadata(path: Path) -> dict[str, str]:
    """Clip -> transcript of a ``metadata.csv`` with lines ``clip|transcript[|normalized transcript]``.

    Raises:
        InputError: a line, which it names, is none such, or lists a clip again.
    """
    transcripts: dict[str, str] = {}
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        clip, *texts = [field.strip() for field in line.split("|")]
        if len(texts) not in (1, 2) or not clip or not texts[-1]:
            wanted = "clip|transcript[|normalized transcript]"
            raise InputError(f"{path}:{number}: {shown(line)}, expected {wanted}, none of them empty")
        if clip in transcripts:
            raise InputError(f"{path}:{number}: {clip} is listed twice")
        transcripts[clip] = texts[-1]
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


def read_chosen(
    paths: dict[str, Path | None], clips: Collection[str], *, skip_missing: bool = False
) -> dict[str, list[str]]:
    """The clips that files of one name on each line put into splits, each once.

    Each must be in the corpus; with ``skip_missing`` one that is not is left out, and a line on stdout counts them.
    """
    chosen: dict[str, list[str]] = {}
    seen: dict[str, str] = {}
    for split, path in paths.items():
        if path is None:
            continue
        names = [(line.strip(), f"{path}:{number}") for number, line in enumerate(read_lines(path), 1) if line.strip()]
        chosen[split] = [clip for clip, _ in names if clip in clips]
        for clip, where in names:
            if clip not in clips and not skip_missing:
                raise InputError(f"{where}: {clip} is not in the corpus")
            if seen.setdefault(clip, where) != where:
                raise InputError(f"{where}: {clip} stands already in {seen[clip]}")
        if len(chosen[split]) < len(names):
            print(f"note: {path} names {len(names)} clips, and the corpus has {len(chosen[split])} of them")
    return chosen


def validate_on_something(chosen: dict[str, list[str]], *, n_val: int) -> None:
    """Where a part of a corpus holds none of the clips to validate on, take some of the training clips instead.

    They are the last of ``chosen["train"]``, ``n_val`` or a tenth of it, whichever is less.
    """
    if chosen.get("val") or "val" not in chosen or len(chosen.get("train", ())) < 2:
        return
    n_val = min(n_val, max(1, len(chosen["train"]) // 10))
    if n_val > 0:
        chosen["train"], chosen["val"] = chosen["train"][:-n_val], chosen["train"][-n_val:]
        print(f"note: none of the clips to validate on is there; {n_val} of the training clips take their place")


def find_recordings(folder: Path) -> list[str]:
    """Names of all clips below ``wavs/``, without their suffix, in order; a folder within it is part of the name."""
    wavs = folder / "wavs"
    paths = [path for path in wavs.rglob("*") if path.suffix in SUFFIXES]
    clips = sorted(path.relative_to(wavs).with_suffix("").as_posix() for path in paths)
    twice = next((clip for clip, following in itertools.pairwise(clips) if clip == following), None)
    if twice is not None:
        raise InputError(f"{wavs / twice}: there is both a .wav and a .flac of that name; keep one of them")
    if not clips:
        raise InputError(f"{wavs}: no recordings (.wav or .flac), and no metadata.csv beside it")
    return clips


def audio_list_name(name: str, split: str) -> str:
    """File name of a list of recordings; LJSpeech's training list keeps the name that it is known by."""
    return "ljs_audio_train_v3.txt" if (name, split) == ("ljs", "train") else f"{name}_audio_{split}.txt"


def recording(folder: Path, clip: str) -> str:
    """Path of a clip's recording within the corpus: ``wavs/<clip>.wav``, or ``.flac``."""
    for suffix in SUFFIXES:
        name = f"wavs/{clip.removesuffix(suffix)}{suffix}"
        if (folder / name).is_file():
            return name
    raise InputError(f"{folder / 'wavs' / clip}.wav: no such file, but metadata.csv lists it")


def read_name(text: str) -> str:
    """A word that can be part of a file's name and of a list's line; raises OptionError for any other."""
    if not text.strip() or "/" in text or "|" in text or text.startswith("-"):
        raise OptionError(f"{text}: expected a name without / and |")
    return text


@dataclass(frozen=True)
class ListOptions:
    """The lists to make of a corpus."""

    dataset_path: Path | None = option(None, "folder of wavs/, and of metadata.csv", names=("-d",), required=True)
    output: Path = option(Path("filelists"), "folder of the lists", names=("-o",), writes=True)
    name: str = option("ljs", "first part of the lists' names", read=read_name)
    n_val: int = option(100, "clips to validate on", least=0)
    n_test: int = option(500, "clips to test on", least=0)
    seed: int = option(1234, "of the draw", least=0)
    train_ids: Path | None = option(None, "file with the train clips, one a line")
    val_ids: Path | None = option(None, "file with the val clips, one a line")
    test_ids: Path | None = option(None, "file with the test clips, one a line")
    skip_missing: bool = option(False, "leave out clips of these files that the corpus does not have")
    speaker: str | None = option(None, "name of the voice, for a last column of the lists of texts", read=read_name)


def main() -> int:
    """Write the lists."""
    parser = ArgumentParser(description="split a corpus in LJSpeech's layout into filelists")
    add_options(parser, ListOptions)
    options: ListOptions = read_options(parser.parse_args(), ListOptions)
    assert options.dataset_path is not None  # it is required
    folder = options.dataset_path
    metadata = folder / "metadata.csv"
    transcripts = read_metadata(metadata) if metadata.is_file() else None
    clips = find_recordings(folder) if transcripts is None else list(transcripts)
    ids = {"train": options.train_ids, "val": options.val_ids, "test": options.test_ids}
    chosen = read_chosen(ids, set(clips), skip_missing=options.skip_missing)
    if options.skip_missing:
        if chosen and not any(chosen.values()):
            chosen = {}
            print("note: the corpus has none of the named clips; its own are drawn")
        validate_on_something(chosen, n_val=options.n_val)
    splits = split_clips(clips, chosen=chosen, n_val=options.n_val, n_test=options.n_test, seed=options.seed)
    lists: dict[str, list[str]] = {}
    for split, names in splits.items():
        recordings = [recording(folder, clip) for clip in names]
        lists[audio_list_name(options.name, split)] = recordings
        if transcripts is not None:
            column = "" if options.speaker is None else f"|{options.speaker}"
            lines = [f"{path}|{transcripts[clip]}{column}" for path, clip in zip(recordings, names)]
            lists[f"{options.name}_audio_text_{split}_filelist.txt"] = lines
    for name, lines in lists.items():
        if lines:
            write_text(options.output / name, "".join(line + "\n" for line in lines))
            print(f"{options.output / name}: {len(lines)} clips")
    return 0


if __name__ == "__main__":
    run(main)
