"""TextGrids become phones and durations as in the original, and its faults are mended."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from golden_files import read_golden

from common.config import AudioConfig
from common.errors import InputError
from common.extraction.features import Extraction, Utterance
from common.extraction.textgrid import TextGridAlignment, fit, read_alignment, trim_silence

FOLDER = "textgrid"
CONFIG = AudioConfig()
FRAME = 256 / 22050  # s


def write_grid(path: Path, intervals: list[tuple[float, float, str]], *, end: float | None = None) -> Path:
    """A short TextGrid with one tier."""
    end = intervals[-1][1] if end is None else end
    head = f'File type = "ooTextFile"\nObject class = "TextGrid"\n\n0\n{end}\n<exists>\n1\n'
    tier = f'"IntervalTier"\n"phones"\n0\n{end}\n{len(intervals)}\n'
    path.write_text(head + tier + "".join(f'{a}\n{b}\n"{label}"\n' for a, b, label in intervals))
    return path


def trimmed(alignment: TextGridAlignment, seconds: float) -> tuple[list[str], list[int], list[int]]:
    """Phones and durations that remain, and the mel frames: the first and one past the last."""
    phones, frames = trim_silence(alignment, seconds, CONFIG)
    utterance = Utterance(0, 0, "wavs/a.wav", "a", None, "list.txt:1")
    cut = Extraction(utterance, durations=np.array(alignment.durations), kept_symbols=phones, kept_frames=frames)
    return list(alignment.phones[slice(*phones)]), cut.kept_durations.tolist(), list(frames)


def as_published(alignment: TextGridAlignment) -> TextGridAlignment:
    """With unknown words named as silence, where ours keeps them."""
    ends, phones = (0, len(alignment.phones) - 1), enumerate(alignment.phones)
    names = [("sil" if place in ends else "sp") if phone == "spn" else phone for place, phone in phones]
    return replace(alignment, phones=tuple(names))


def test_phones_and_durations_agree_with_the_original(folder: Path):
    files = read_golden(folder / "expected.json", "files")
    assert files
    for name, wanted in files.items():
        got = as_published(read_alignment(folder / wanted["file"], CONFIG))
        assert list(got.phones) == wanted["phones"], name
        assert list(got.durations) == wanted["durations"], name
        fitted = fit(got, wanted["mel_len"], path=folder / wanted["file"], config=CONFIG)
        assert fitted == got


def test_every_malformed_file_is_one_clear_line(folder: Path):
    reasons = {
        "missing_phones_tier": "no tier of intervals named phones, only 'words'",
        "overlapping": r"not a readable TextGrid: .*Overlap",
        "truncated": "not a readable TextGrid: Early end of text",
        "wrong_total_length": r"\d+ frames \(.* s\), the recording has \d+ \(.* s\); is it the TextGrid of this",
    }
    expected = read_golden(folder / "expected.json")
    assert {name.split(".")[-2] for name in expected["malformed"]} == {*reasons}
    for name, fact in expected["malformed"].items():
        path, n_frames = folder / "malformed" / name, expected["files"][fact["clip"]]["mel_len"]
        with pytest.raises(InputError, match=reasons[name.split(".")[-2]]) as caught:
            fit(read_alignment(path, CONFIG), n_frames, path=path, config=CONFIG)
        assert str(caught.value).startswith(f"{path}:") and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("encoding", "newline"), [("utf-16", "\n"), ("utf-16-be", "\r\n"), ("utf-8-sig", "\r"), ("latin-1", "\n")]
)
def test_every_encoding_that_praat_reads_is_read(tmp_path: Path, encoding: str, newline: str):
    path, mark = tmp_path / "a.TextGrid", "\ufeff" if encoding == "utf-16-be" else ""
    path.write_bytes((mark + HEAD + '0\n1\n" \u00e6"\n1\n2\n"K"\n').replace("\n", newline).encode(encoding))
    assert read_alignment(path, CONFIG).phones == ("\u00e6", "K")


@pytest.mark.parametrize(("names", "read"), [(("words", "anna - phones"), 1), (("a - phones", "b - Phones"), 0)])
def test_the_tier_of_phones_may_bear_the_name_of_its_speaker(tmp_path: Path, names: tuple[str, str], read: int):
    tiers = [f'"IntervalTier"\n"{name}"\n0\n2\n1\n0\n2\n"{label}"\n' for name, label in zip(names, ("ab", "a"))]
    path = tmp_path / "a.TextGrid"
    path.write_text(HEAD.partition("1\n")[0] + "2\n" + "".join(tiers))
    if read:
        assert read_alignment(path, CONFIG).phones == ("a",)
        return
    with pytest.raises(InputError, match="several tiers of phones"):
        read_alignment(path, CONFIG)
    path.write_text(path.read_text().replace('"ab"', '""'))
    assert read_alignment(path, CONFIG).phones == ("a",)  # the other speaker is silent


def test_gaps_are_silence_unless_times_are_rounded(tmp_path: Path):
    path = write_grid(tmp_path / "a.TextGrid", [(0.2, 0.4, "AA1"), (0.4, 0.5, "B"), (0.7, 0.9, "K")], end=1.0)
    got = read_alignment(path, CONFIG)
    assert got.phones == ("sil", "AA1", "B", "sp", "K", "sil")
    bounds = [0, 18, 35, 44, 61, 78, 87]  # ceil(t / FRAME)
    assert list(got.durations) == [b - a for a, b in pairwise(bounds)]
    path = write_grid(tmp_path / "a.TextGrid", [(0.0, 0.3, "AA1"), (0.3000001, 0.49999, "B")], end=0.5)
    assert read_alignment(path, CONFIG).phones == ("AA1", "B")
    labels = [(0.0, 0.3, "SIL"), (0.3, 0.5, "AA1"), (0.5, 0.7, "<eps>"), (0.7, 1.0, "B")]
    path = write_grid(tmp_path / "a.TextGrid", labels)
    assert read_alignment(path, CONFIG).phones == ("sil", "AA1", "sp", "B")


@pytest.mark.parametrize(("n_frames", "last"), [(8, None), (9, 4), (10, 5), (11, 6), (12, None)])
def test_the_last_interval_takes_a_difference_of_one_frame_and_more_is_refused(
    tmp_path: Path, n_frames: int, last: int | None
):
    path = write_grid(tmp_path / "a.TextGrid", [(0.0, 5 * FRAME, "AA1"), (5 * FRAME, 10 * FRAME, "B")])
    alignment = read_alignment(path, CONFIG)
    if last is not None:
        assert fit(alignment, n_frames, path=path, config=CONFIG).durations == (5, last)
        return
    with pytest.raises(InputError, match=f"10 frames .* the recording has {n_frames}"):
        fit(alignment, n_frames, path=path, config=CONFIG)


def test_trimming_agrees_with_the_original_and_is_sensible_with_one_edge_silence_or_none(folder: Path):
    golden = read_golden(folder / "trim_silence.json")
    files = read_golden(folder / "expected.json", "files")
    cases = [
        (clip, run["trim_silence"], wanted["phones"], wanted["durations"], wanted["mel_slice"])
        for run in golden["runs"].values()
        for clip, wanted in run["clips"].items()
        if run["trim_silence"] is not None
    ]
    single = golden["single_edge_cases"]["cases"]
    assert cases and single
    for case, wanted in single.items():
        clip, seconds = case.split("|trim=")
        values = [wanted[f"intended_{name}"] for name in ("phones", "durations", "mel_slice")]
        cases.append((clip, float(seconds), *values))
    for clip, seconds, phones, durations, mel_slice in cases:
        found = trimmed(as_published(read_alignment(folder / files[clip]["file"], CONFIG)), seconds)
        assert found == (phones, durations, mel_slice), (clip, seconds)


HEAD = 'File type = "ooTextFile"\nObject class = "TextGrid"\n\n0\n2\n<exists>\n1\n"IntervalTier"\n"phones"\n0\n2\n2\n'
WRONG_GRIDS = {
    "no quotes": (HEAD + '0\n1\nAA1\n1\n2\n"K"\n', "Found a number while looking for a string"),
    "backwards": (HEAD + '0\n1\n"AA1"\n2\n1\n"K"\n', "Wrong xmin 2 and xmax 1."),
    "a space in a phone": (HEAD + '0\n1\n"AH 0"\n1\n2\n"K"\n', "the phone 'AH 0' at 0 s is not one word"),
    "a bar in a phone": (HEAD + '0\n1\n"A|B"\n1\n2\n"K"\n', "the phone 'A|B' at 0 s is not one word"),
    "absent": (None, "no such TextGrid"),
}


@pytest.mark.parametrize("name", WRONG_GRIDS)
def test_a_file_that_cannot_be_read_is_refused_in_one_line(tmp_path: Path, name: str):
    content, message = WRONG_GRIDS[name]
    path = tmp_path / "a.TextGrid"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError) as caught:
        read_alignment(path, CONFIG)
    assert str(caught.value).startswith(f"{path}:") and message in str(caught.value)
    assert "\n" not in str(caught.value)
