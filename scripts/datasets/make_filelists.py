"""Splits a corpus in LJSpeech's layout into lists of recordings for training, validation and testing.

A list of texts has lines ``wavs/<clip>.wav|<transcript>``, with the normalized transcript if the corpus has one; a
list of recordings has only the first column, which is all that a vocoder needs. With ``speakers.txt``, a last column
names the speakers, which are the clips' folders. A former list that differs is renamed with the suffix ``.old``.
"""

import glob
import random
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from common.cli import ArgumentParser, run
from common.errors import InputError, shown
from common.files import read_lines, write_text
from common.importing.options import SPEAKERS, import_command, name_import
from common.options import add_options, option, read_options
from scripts.launch import shipped

SPLITS = ("train", "val", "test")


def read_metadata(path: Path) -> dict[str, str]:
    """Return transcripts by clip from a ``metadata.csv``; raise InputError for malformed lines and duplicate clips."""
    transcripts: dict[str, str] = {}
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        clip, *texts = [field.strip() for field in line.split("|")]
        clip = re.sub(r"\.(wav|flac)$", "", clip)
        if len(texts) not in (1, 2) or not texts[-1] or clip in transcripts:
            wanted = "clip|transcript[|normalized transcript], each clip once"
            raise InputError(f"{path}:{number}: {shown(line)}, expected {wanted}")
        transcripts[clip] = texts[-1]
    return transcripts


def find_recordings(folder: Path) -> dict[str, str]:
    """Return paths within a corpus, such as ``wavs/anna/a.wav``, by name, ``anna/a``; raise InputError if it has none.

    A ``.wav`` takes precedence over a ``.flac``.
    """
    wavs = folder / "wavs"
    paths = sorted(path.relative_to(wavs) for path in wavs.rglob("*") if path.suffix in (".wav", ".flac"))
    if not paths:
        raise InputError(f"{wavs}: no recordings (.wav or .flac){name_import(folder)}")
    return {path.with_suffix("").as_posix(): f"wavs/{path.as_posix()}" for path in paths}


def read_published_splits(clips: Iterable[str]) -> dict[str, list[str]]:
    """Return the ``clips`` in each split of LJSpeech that the published voices used; notes count missing ones."""
    found, there = {}, {*clips}
    for split in SPLITS:
        path = shipped(f"filelists/ljs_{split}_ids.txt")
        names = read_lines(path)
        found[split] = [name for name in names if name in there]
        if len(found[split]) < len(names):
            print(f"note: {path} names {len(names)} clips, and the corpus has {len(found[split])} of them")
    return found


def split_clips(
    clips: Iterable[str], speakers: Mapping[str, str], *, n_val: int, n_test: int, seed: int
) -> dict[str, list[str]]:
    """Return the clips of each split; the same clips and ``seed`` always give the same splits.

    The training split gets the rest, with a clip of each of ``speakers``, by clip. Raises InputError if it's empty.
    """
    rest = sorted(clips)
    random.Random(seed).shuffle(rest)
    needed = {speakers[clip]: clip for clip in rest if clip in speakers}.values()  # the last of each
    rest = [clip for clip in rest if clip not in {*needed}]
    val, test, train = rest[:n_val], rest[n_val : n_val + n_test], [*rest[n_val + n_test :], *needed]
    if not train:
        raise InputError(f"no clips are left to train on: {len(val)} go to validation and {len(test)} to testing")
    return {"train": train, "val": val, "test": test}


def write_list(path: Path, lines: list[str]) -> bool:
    """Write a list unless it's empty; return whether a former one that differs was renamed."""
    text = "".join(line + "\n" for line in lines)
    replaces = path.is_file() and path.read_bytes() != text.encode()
    if replaces:
        _rename(path)
    if lines:
        write_text(path, text)
        print(f"{path}: {len(lines)} clips")
    return replaces


def _rename(path: Path) -> None:
    """Rename a former list, which may have been edited by hand."""
    path.replace(f"{path}.old")
    print(f"note: {path} replaces a different list, which is now {path.name}.old")


def list_name(name: str, columns: str, split: str) -> str:
    """Return the file name of a list; LJSpeech's list of training recordings keeps its published name."""
    if columns.endswith("_text"):
        return f"{name}_{columns}_{split}_filelist.txt"
    return "ljs_audio_train_v3.txt" if (name, split) == ("ljs", "train") else f"{name}_audio_{split}.txt"


@dataclass(frozen=True)
class ListOptions:
    """The lists to make of a corpus."""

    dataset_path: Path = option(None, "folder of wavs/, and of metadata.csv", names=("-d",), required=True)
    output: Path = option(Path("filelists"), "folder of the lists", names=("-o",), writes=True)
    name: str = option("ljs", "first part of the lists' names")
    n_val: int = option(100, "clips to validate on", least=0, variable="N_VAL")
    n_test: int = option(500, "clips to test on", least=0, variable="N_TEST")
    seed: int = option(1234, "seed of the split", least=0)
    speaker: str | None = option(None, "name of the voice, for a last column in the lists of texts")
    copy_list: Path | None = option(None, "write only this list, with columns output and wav", writes=True)
    n_clips: int = option(10, "clips in it, the first by name; 0: all", least=0)


def main() -> int:
    parser = ArgumentParser(description="split a corpus in LJSpeech's layout into filelists")
    add_options(parser, ListOptions)
    options: ListOptions = read_options(parser.parse_args(), ListOptions)
    recordings = find_recordings(options.dataset_path)
    if options.copy_list is not None:
        copied = list(recordings)[: options.n_clips or None]
        rows = [f"{clip}.wav\t{options.dataset_path.resolve() / recordings[clip]}\n" for clip in copied]
        write_text(options.copy_list, "".join(["output\twav\n", *rows]))
        print(f"{options.copy_list}: {len(copied)} recordings")
    else:
        write_lists(options, recordings)
    return 0


def write_lists(options: ListOptions, recordings: dict[str, str]) -> None:
    """Write the lists of recordings, and of texts if there are transcripts; note which clips are too long."""
    from common.importing.advice import check_recordings, long_clips  # here, as they load PyTorch

    corpus, metadata = options.dataset_path, options.dataset_path / "metadata.csv"
    transcripts = read_metadata(metadata) if metadata.is_file() else None
    clips = recordings if transcripts is None else transcripts
    if absent := next((clip for clip in clips if clip not in recordings), None):
        others = sorted((corpus / "wavs").glob(f"{glob.escape(absent)}.*"))
        found = f"but {others[0].name} is{name_import(corpus)}" if others else "but metadata.csv lists it"
        raise InputError(f"{corpus}/wavs/{absent}.wav: no such file, {found}")
    if long := long_clips(check_recordings(corpus, [recordings[clip] for clip in clips])):
        print(f"note: {corpus}: {long}; run {import_command(corpus)}", file=sys.stderr)
    speakers: dict[str, str] = {}  # clip -> its folder
    if options.speaker is None and (corpus / SPEAKERS).is_file():
        speakers = {clip: clip.partition("/")[0] for clip in clips}
    splits = read_published_splits(clips) if options.name == "ljs" else {"train": []}
    if not splits["train"]:  # another corpus
        splits = split_clips(clips, speakers, n_val=options.n_val, n_test=options.n_test, seed=options.seed)
    for split, names in splits.items():
        lists = {list_name(options.name, "audio", split): [recordings[clip] for clip in names]}
        if transcripts is not None:
            rows = ((recordings[clip], transcripts[clip], speakers.get(clip, options.speaker)) for clip in names)
            lines = ["|".join(filter(None, row)) for row in rows]
            lists[list_name(options.name, "audio_text", split)] = lines
        replaced = [name for name, lines in lists.items() if write_list(options.output / name, lines)]
        for columns in ("mel_dur_pitch_text", "mel_text") if any("_text_" in name for name in replaced) else ():
            path = options.output / list_name(options.name, columns, split)
            if path.is_file():  # of the former transcripts
                _rename(path)


if __name__ == "__main__":
    run(main)
