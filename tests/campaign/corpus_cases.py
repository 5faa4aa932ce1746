"""Malformed corpora: lists, tables of phrases, TextGrids, recordings and features."""

import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from harness import Case
from hypothesis import strategies as st
from values import text_mutations, write_file
from world import World

# ---- lists and tables of phrases

FIELDS = {  # another value of a field of a list -> whether it is known to be wrong
    "": True,
    "absent/u0.pt": True,
    "../u0.pt": True,
    "/dev/zero": True,
    "/etc/passwd": True,
    ".": True,
    "fifo": True,
    "mels": True,
}
LISTS = {"inference": "phrases", "train": "features", "extract_mels": "recordings"}
TEXTS = (
    "",
    "caf\u00e9 \u4e2d\u6587",
    "{AH0}",
    "{",
    "{XX9}",
    "<speak>a",
    "a " * 2000,
    "1" * 40,
    "$" * 30,
    "1/0",
    "...",
    "12:99:99",
)


def _columns(kind: str) -> tuple[list[str], str]:
    """Lines of a valid list, and what separates its columns."""
    if kind == "phrases":
        return ["output|text|speaker", "a.wav|Go on.|ann", "b.wav|Come back.|bob"], "|"
    if kind == "features":
        rows = ["go on.", "come back."]
        return [f"mels/u{i}.pt|durations/u{i}.pt|pitch_char/u{i}.pt|{text}" for i, text in enumerate(rows)], "|"
    return [f"wavs/c00{i}.wav|Hello number c00{i}." for i in range(2)], "|"


def lists(world: World) -> st.SearchStrategy[Case]:
    """Lists with a wrong field, line or byte."""

    @st.composite
    def cases(draw: st.DrawFn) -> Case:
        program = draw(st.sampled_from(["inference", "inference", "extract_mels", "extract_mels", "train"]))
        kind = LISTS[program]
        lines, bar = _columns(kind)
        rows = [line.split(bar) for line in lines]
        how = draw(st.sampled_from(["field", "field", "text", "row", "bytes", "file"]))
        row = draw(st.integers(1 if kind == "phrases" else 0, len(rows) - 1))
        column = draw(st.integers(0, len(rows[row]) - 1))
        wrong, data = True, None
        if how == "field":
            value = draw(st.sampled_from(list(FIELDS)))
            rows[row][column] = value
            is_text = rows[0][column] == "text" if kind == "phrases" else column == len(rows[row]) - 1
            wrong = not is_text and not (kind == "phrases" and value in ("mels", "fifo"))
            label = f"field {column} of line {row}: {value[:20]!r}"
        elif how == "text":
            text = draw(st.one_of(st.sampled_from(TEXTS), st.text(max_size=30)))
            column = 1 if kind != "features" else 3
            rows[row][column] = text
            wrong, label = False, f"text of line {row}: {text[:40]!r} ({len(text)})"
        elif how == "row":
            what = draw(st.sampled_from(["one column more", "one column fewer", "twice", "only bars", "same output"]))
            if what == "one column more":
                rows[row].insert(0, "x")
            elif what == "one column fewer":
                del rows[row][0]
            elif what == "twice":
                rows.append(rows[row])
            elif what == "same output":
                rows[-1][0] = rows[-2][0]
            else:
                rows[row] = [""] * 4
            wrong = what in ("one column more", "one column fewer", "only bars") and kind != "phrases"
            label = f"line {row}: {what}"
        elif how == "bytes":
            mutation = draw(text_mutations)
            data = mutation.applied(("\n".join(lines) + "\n").encode())
            wrong, label = mutation.label in ("empty file", "UTF-16", "zero bytes", "PNG"), mutation.label
        else:
            label = draw(st.sampled_from(["a folder", "a FIFO", "absent"]))
        text = "\n".join(bar.join(row) for row in rows) + "\n"

        def write(folder: Path) -> list[str]:
            return _write_list(world, folder, kind, text.encode() if data is None else data, how, label)

        writes = ("out",) if program != "extract_mels" else ("out", "corpus")
        return Case(f"{program}: {label}", program, write, wrong=wrong, status=None, writes=writes)

    return cases()


def _write_list(world: World, folder: Path, kind: str, data: bytes, how: str, label: str) -> list[str]:
    dataset = folder / "corpus"
    dataset.mkdir()
    os.mkfifo(dataset / "fifo")
    source = world.folder / ("features" if kind == "features" else "wavs")
    for path in source.iterdir():
        if path.is_dir():
            (dataset / path.name).mkdir() if kind == "recordings" else (dataset / path.name).symlink_to(path)
            if kind == "recordings":
                for file in path.iterdir():
                    (dataset / path.name / file.name).symlink_to(file)
    path = dataset / "list.txt"
    special_file(path, label) if how == "file" else path.write_bytes(data)
    if kind == "phrases":
        voice = ["--fastpitch", str(world.voice), "-o", "out", "--no-audio", "--save-mels"]
        return ["-i", str(path), "--dataset-path", str(dataset), *voice]
    if kind == "features":
        shutil.copy(source / "pitch_char_stats__train.json", dataset / "pitch_char_stats__list.json")
        words = world.train_voice(dataset)
        return [word.replace("train.txt", "list.txt").replace("val.txt", "list.txt") for word in words]
    return world.extract(dataset)


def special_file(path: Path, kind: str) -> None:
    """What is no regular file with contents."""
    makers: dict[str, Callable[[], Any]] = {
        "a folder": path.mkdir,
        "a FIFO": lambda: os.mkfifo(path),
        "absent": lambda: None,
    }
    makers[kind]()


# ---- recordings


def _recordings(world: World, folder: Path) -> Path:
    dataset = folder / "corpus"
    for name in ("wavs", "TextGrid"):
        (dataset / name).mkdir(parents=True)
        for file in (world.folder / "wavs" / name).iterdir():
            (dataset / name / file.name).symlink_to(file)
    shutil.copy(world.folder / "wavs" / "list.txt", dataset / "list.txt")
    return dataset


def recordings(world: World) -> st.SearchStrategy[Case]:
    """WAV and FLAC files with wrong headers and samples."""

    @st.composite
    def cases(draw: st.DrawFn) -> Case:
        program = draw(st.sampled_from(["extract_mels", "extract_mels", "inference"]))
        form = draw(st.sampled_from(["WAV", "WAV", "FLAC", "OGG"]))
        how = draw(st.sampled_from(["bytes", "samples", "file"])) if form == "WAV" else "bytes"
        wrong = False
        if how == "bytes":
            text = draw(text_mutations)
            label, wrong = text.label, text.label in ("empty file", "PNG", "zero bytes")
        elif how == "samples":
            label = draw(st.sampled_from(["none", "NaN", "stereo", "one", "silence", "constant"]))
            wrong = label in ("none", "NaN", "stereo", "one") and program == "extract_mels"
        else:
            label = draw(st.sampled_from(["a folder", "a FIFO", "absent"]))
            wrong = True

        def write(folder: Path) -> list[str]:
            dataset = _recordings(world, folder)
            path = dataset / "wavs" / "c000.wav"
            wave, rate = soundfile.read(path)
            path.unlink()
            if how == "file":
                special_file(path, label)
            elif how == "samples":
                soundfile.write(path, _samples(label, wave), rate, subtype="DOUBLE")
            else:
                soundfile.write(path, wave, rate, format=form, subtype="VORBIS" if form == "OGG" else "PCM_16")
                path.write_bytes(text.applied(path.read_bytes()))
            if program == "inference":
                write_file(dataset / "one.tsv", "output\twav\na.wav\twavs/c000.wav\n")
                words = ["-i", str(dataset / "one.tsv"), "--dataset-path", str(dataset), "-o", "out"]
                return [*words, "--no-audio", "--save-mels"]
            return world.extract(dataset)

        return Case(f"{program} {form} {how}: {label}", program, write, wrong=wrong, writes=("corpus", "out"))

    return cases()


def _samples(kind: str, wave: np.ndarray) -> np.ndarray:
    if kind == "none":
        return wave[:0]
    if kind == "one":
        return wave[:1]
    if kind == "stereo":
        return np.stack((wave, wave), axis=1)
    if kind in ("silence", "constant"):
        return np.full_like(wave, 0.0 if kind == "silence" else 0.5)
    changed = wave.copy()
    changed[100] = math.nan
    return changed
