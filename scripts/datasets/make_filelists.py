"""Splits a corpus in LJSpeech's layout into lists of recordings for training, validation and testing.

    python -m scripts.datasets.make_filelists -d LJSpeech-1.1 -o filelists --name ljs --n-val 100 --n-test 500

A list of texts has lines ``wavs/<clip>.wav|<transcript>``, with the normalized transcript where the corpus has one; a
list of recordings has the first column alone, which is all that a vocoder needs. Of a corpus with ``speakers.txt`` the
lists of texts have the folders of the clips as their last column, the speakers. A folder of recordings without
``metadata.csv`` gets the latter kind only. A list that is there already and differs goes to the folder ``replaced``.
``--copy-list copy.tsv`` lists recordings for copy synthesis instead, which shows how good a vocoder can be.
"""

import glob
import itertools
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from common.cli import ArgumentParser, run
from common.errors import InputError, shown
from common.files import make_folder, read_lines, write_text
from common.importing.options import SPEAKERS, import_command, name_import
from common.options import add_options, option, read_options
from scripts.launch import shipped

SPLITS = ("train", "val", "test")
REPLACED = "replaced"  # folder of former lists


def read_metadata(path: Path) -> dict[str, str]:
    """Clip -> transcript of a ``metadata.csv`` with lines ``clip|transcript[|normalized transcript]``.

    Raises InputError for a line that is none such, or that lists a clip again.
    """
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
    """Paths within a corpus, such as ``wavs/anna/a.wav``, of all clips below ``wavs/``, by their names: ``anna/a``.

    Raises InputError where there are none; it names the command that imports what is there.
    """
    wavs = folder / "wavs"
    paths = sorted(path.relative_to(wavs) for path in wavs.rglob("*") if path.suffix in (".wav", ".flac"))
    if not paths:
        raise InputError(f"{wavs}: no recordings (.wav or .flac){name_import(folder)}")
    found = {path.with_suffix("").as_posix(): f"wavs/{path.as_posix()}" for path in paths}
    if n_twice := len(paths) - len(found):
        print(f"note: {n_twice} clips are there as .flac and as .wav, which is taken")
    return found


def read_chosen(path: Path, clips: Collection[str]) -> list[str]:
    """The ``clips`` of a corpus that a file names, one a line; a line on stdout counts those that it does not have."""
    names = [line.strip() for line in read_lines(path) if line.strip()]
    found = [name for name in names if name in clips]
    if len(found) < len(names):
        print(f"note: {path} names {len(names)} clips, and the corpus has {len(found)} of them")
    return found


def split_clips(
    clips: Iterable[str],
    *,
    chosen: dict[str, list[str]],
    n_val: int,
    n_test: int,
    seed: int,
    speaker_of: Callable[[str], str] | None = None,
) -> dict[str, list[str]]:
    """The clips of each split, in order.

    Splits of which ``chosen`` names clips are these; the others are drawn from the rest, the same ones each time for
    the same clips and ``seed``, and training takes what is left: of each speaker a clip at least.

    Raises:
        InputError: a clip is named twice, or none is left to train on.
    """
    splits = {split: names for split, names in chosen.items() if names}
    taken = Counter(clip for names in splits.values() for clip in names)
    if twice := [clip for clip, count in taken.items() if count > 1]:
        raise InputError(f"{twice[0]} is named twice in the files of clips")
    rest = sorted(set(clips) - set(taken))
    random.Random(seed).shuffle(rest)
    needed = [] if speaker_of is None else [*{speaker_of(clip): clip for clip in rest}.values()]  # the last of each
    rest = [clip for clip in rest if clip not in {*needed}]
    for split, size in (("val", n_val), ("test", n_test)):
        if split not in splits:
            splits[split], rest = rest[:size], rest[size:]
    splits.setdefault("train", [*rest, *needed])
    if not splits["train"]:
        raise InputError(
            f"no clips are left to train on: {len(splits['val'])} go to validation and {len(splits['test'])} to testing"
        )
    return {split: splits[split] for split in SPLITS}


def write_list(path: Path, lines: list[str]) -> bool:
    """Write a list unless it is empty, and return whether another was there, which is moved away."""
    text = "".join(line + "\n" for line in lines)
    replaces = path.is_file() and path.read_bytes() != text.encode()
    if replaces:
        _move_away(path)
    if lines:
        write_text(path, text)
        print(f"{path}: {len(lines)} clips")
    return replaces


def _move_away(path: Path) -> None:
    """Keep a former list, perhaps edited by hand, in the folder `REPLACED`."""
    names = (path.parent / REPLACED / f"{path.name}.{number}" for number in itertools.count(1))
    kept = next(one for one in names if not one.exists())
    make_folder(kept.parent)
    path.replace(kept)
    print(f"note: {path} was another list, which is now {kept}")


def audio_list_name(name: str, split: str) -> str:
    """File name of a list of recordings; LJSpeech's training list keeps the name that it is known by."""
    return "ljs_audio_train_v3.txt" if (name, split) == ("ljs", "train") else f"{name}_audio_{split}.txt"


def _folder(clip: str) -> str:
    return clip.partition("/")[0]


@dataclass(frozen=True)
class ListOptions:
    """The lists to make of a corpus."""

    dataset_path: Path = option(None, "folder of wavs/, and of metadata.csv", names=("-d",), required=True)
    output: Path = option(Path("filelists"), "folder of the lists", names=("-o",), writes=True)
    name: str = option("ljs", "first part of the lists' names")
    n_val: int = option(100, "clips to validate on", least=0, variable="N_VAL")
    n_test: int = option(500, "clips to test on", least=0, variable="N_TEST")
    seed: int = option(1234, "of the draw", least=0)
    train_ids: Path | None = option(None, "file with the train clips, one a line", variable="TRAIN_IDS")
    val_ids: Path | None = option(None, "file with the val clips, one a line", variable="VAL_IDS")
    test_ids: Path | None = option(None, "file with the test clips, one a line", variable="TEST_IDS")
    speaker: str | None = option(None, "name of the voice, for a last column of the lists of texts")


def main() -> int:
    """Write the lists."""
    parser = ArgumentParser(description="split a corpus in LJSpeech's layout into filelists")
    add_options(parser, ListOptions)
    parser.add_argument("--copy-list", type=Path, help="list of columns output and wav to write, instead of all others")
    parser.add_argument("--n-clips", type=int, default=10, help="how many it has, the first by name; 0: all")
    args = parser.parse_args()
    options: ListOptions = read_options(args, ListOptions)
    recordings, metadata = find_recordings(options.dataset_path), options.dataset_path / "metadata.csv"
    if args.copy_list is not None:
        copied = list(recordings)[: args.n_clips or None]
        rows = [f"{clip}.wav\t{options.dataset_path.resolve() / recordings[clip]}\n" for clip in copied]
        write_text(args.copy_list, "".join(["output\twav\n", *rows]))
        print(f"{args.copy_list}: {len(copied)} recordings")
        return 0
    transcripts = read_metadata(metadata) if metadata.is_file() else None
    clips = recordings if transcripts is None else transcripts
    if absent := next((clip for clip in clips if clip not in recordings), None):
        others = sorted((options.dataset_path / "wavs").glob(f"{glob.escape(absent)}.*"))
        found = f"but {others[0].name} is{name_import(options.dataset_path)}" if others else "but metadata.csv lists it"
        raise InputError(f"{options.dataset_path}/wavs/{absent}.wav: no such file, {found}")
    from common.importing.advice import check_recordings, long_clips  # here, as they load PyTorch

    lengths = check_recordings(options.dataset_path, [recordings[clip] for clip in clips])
    ids = {"train": options.train_ids, "val": options.val_ids, "test": options.test_ids}
    if options.name == "ljs" and not any(ids.values()):  # which clips published voices were trained on
        ids = {split: shipped(f"filelists/ljs_{split}_ids.txt") for split in SPLITS}
    chosen = {split: read_chosen(path, clips) for split, path in ids.items() if path}
    has_speakers = options.speaker is None and (options.dataset_path / SPEAKERS).is_file()
    draw = partial(split_clips, n_val=options.n_val, n_test=options.n_test, seed=options.seed)
    try:
        splits = draw(clips, chosen=chosen, speaker_of=_folder if has_speakers else None)
    except InputError as error:
        long = long_clips(lengths)
        raise InputError(f"{error}{long and f'; {long}: {import_command(options.dataset_path)}'}") from error
    for split, names in splits.items():
        lists = {audio_list_name(options.name, split): [recordings[clip] for clip in names]}
        if transcripts is not None:
            speakers = (_folder(clip) if has_speakers else options.speaker for clip in names)
            ends = (f"|{speaker}" if speaker else "" for speaker in speakers)
            lines = [f"{recordings[clip]}|{transcripts[clip]}{end}" for clip, end in zip(names, ends)]
            lists[f"{options.name}_audio_text_{split}_filelist.txt"] = lines
        replaced = [name for name, lines in lists.items() if write_list(options.output / name, lines)]
        for columns in ("mel_dur_pitch", "mel") if any("_text_" in name for name in replaced) else ():
            path = options.output / f"{options.name}_{columns}_text_{split}_filelist.txt"
            if path.is_file():  # of former transcripts, or clips
                _move_away(path)
    if long := long_clips(lengths):
        print(f"note: {options.dataset_path}: {long}; run {import_command(options.dataset_path)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    run(main)
