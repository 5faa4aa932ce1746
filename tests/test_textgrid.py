"""TextGrids become phones and durations as in the original, and its faults are mended."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from golden_files import entries, read_golden

from common.config import AudioConfig
from common.errors import InputError
from common.extraction.features import Extraction, Utterance
from common.extraction.textgrid import TextGridAlignment, fit, read_alignment, trim_silence

CONFIG = AudioConfig()
FRAME = 256 / 22050  # s


@pytest.fixture(scope="module")
def folder(goldens: Path) -> Path:
    return goldens / "textgrid"


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


def test_phones_and_durations_agree_with_the_original(folder: Path):
    files = read_golden(folder / "expected.json", "files")
    assert files
    for name, wanted in files.items():
        got = read_alignment(folder / wanted["file"], CONFIG)
        assert list(got.phones) == wanted["phones"], name
        assert list(got.durations) == wanted["durations"], name
        fitted = fit(got, wanted["mel_len"], path=folder / wanted["file"], config=CONFIG)
        assert fitted == got


def test_every_malformed_file_is_one_clear_line(folder: Path):
    reasons = {
        "missing_phones_tier": "no tier named phones, only 'words'",
        "overlapping": r"not a readable TextGrid: .*Overlap",
        "truncated": "not a readable TextGrid: truncated, or",
    }
    names = read_golden(folder / "expected.json", "malformed")
    assert {name.split(".")[-2] for name in names} == {*reasons, "wrong_total_length"}
    for name in names:
        path, reason = folder / "malformed" / name, reasons.get(name.split(".")[-2])
        if reason is None:
            continue  # which has a fault only beside its recording, below
        with pytest.raises(InputError, match=reason) as caught:
            read_alignment(path, CONFIG)
        assert str(caught.value).startswith(f"{path}:")
        assert "\n" not in str(caught.value)


def test_a_textgrid_of_another_recording_is_refused(folder: Path):
    (path,) = (folder / "malformed").glob("*.wrong_total_length.TextGrid")
    expected = read_golden(folder / "expected.json")
    n_frames = expected["files"][expected["malformed"][path.name]["clip"]]["mel_len"]
    alignment = read_alignment(path, CONFIG)
    sizes = [f"{count} \\({count * FRAME:.2f} s\\)" for count in (n_frames, alignment.n_frames)]
    message = f"{sizes[1].replace(' ', ' frames ', 1)}, the recording has {sizes[0]}; is it"
    with pytest.raises(InputError, match=message):
        fit(alignment, n_frames, path=path, config=CONFIG)


def file_of_each_format() -> list[str]:
    """The smallest TextGrid in the long format and the smallest in the short one."""
    files = entries("textgrid/expected.json", "files").values()
    largest_first = sorted(files, key=lambda one: -len(one["phones"]))
    return list({one["format"]: one["file"] for one in largest_first}.values())


@pytest.mark.parametrize("name", file_of_each_format())
def test_a_file_cut_between_any_two_lines_is_refused(tmp_path: Path, folder: Path, name: str):
    lines = (folder / name).read_text(encoding="utf-8").splitlines(keepends=True)
    path = tmp_path / "a.TextGrid"
    for n_lines in range(len(lines)):
        path.write_text("".join(lines[:n_lines]))
        with pytest.raises(InputError, match="TextGrid"):
            read_alignment(path, CONFIG)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-8-sig"])
def test_utf_16_is_read_as_praat_writes_it(tmp_path: Path, folder: Path, encoding: str):
    files = read_golden(folder / "expected.json", "files").values()
    name = next(one["file"] for one in files if not "".join(one["phones"]).isascii())
    source = folder / name  # in the International Phonetic Alphabet
    path = tmp_path / "a.TextGrid"
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    path.write_bytes((mark + source.read_text(encoding="utf-8")).encode(encoding))
    assert read_alignment(path, CONFIG) == read_alignment(source, CONFIG)


def test_other_encodings_and_missing_files_are_named(tmp_path: Path):
    path = write_grid(tmp_path / "a.TextGrid", [(0.0, 0.5, "a")])
    path.write_bytes(path.read_text().replace('"a"', '"ä"').encode("latin-1"))
    with pytest.raises(InputError, match=r"a\.TextGrid:\d+: byte \d+ is not UTF-8; .*, or as UTF-16 with"):
        read_alignment(path, CONFIG)
    with pytest.raises(InputError, match=r"b\.TextGrid: no such TextGrid"):
        read_alignment(tmp_path / "b.TextGrid", CONFIG)


@pytest.mark.parametrize("label", ["AH 0", "A|B"])
def test_a_phone_that_a_list_cannot_hold_is_refused(tmp_path: Path, label: str):
    path = write_grid(tmp_path / "a.TextGrid", [(0.0, 0.5, "K"), (0.5, 0.75, label)])
    with pytest.raises(InputError, match=r"the phone '.*' at 0\.5 s is not one word"):
        read_alignment(path, CONFIG)


def test_gaps_are_silence(tmp_path: Path):
    path = write_grid(tmp_path / "a.TextGrid", [(0.2, 0.4, "AA1"), (0.4, 0.5, "B"), (0.7, 0.9, "K")], end=1.0)
    got = read_alignment(path, CONFIG)
    assert got.phones == ("sil", "AA1", "B", "sp", "K", "sil")
    bounds = [0, 18, 35, 44, 61, 78, 87]  # ceil(t / FRAME)
    assert list(got.durations) == [b - a for a, b in pairwise(bounds)]


def test_rounding_of_times_makes_no_gap(tmp_path: Path):
    path = write_grid(tmp_path / "a.TextGrid", [(0.0, 0.3, "AA1"), (0.3000001, 0.49999, "B")], end=0.5)
    assert read_alignment(path, CONFIG).phones == ("AA1", "B")


@pytest.mark.parametrize(("n_frames", "last"), [(9, 4), (10, 5), (11, 6)])
def test_the_last_interval_takes_a_difference_of_one_frame(tmp_path: Path, n_frames: int, last: int):
    alignment = TextGridAlignment(phones=("AA1", "B"), durations=(5, 5))
    assert fit(alignment, n_frames, path=tmp_path, config=CONFIG).durations == (5, last)


def test_a_recording_of_whole_hops_has_one_frame_more_than_its_textgrid(tmp_path: Path):
    path = write_grid(tmp_path / "a.TextGrid", [(0.0, 5 * FRAME, "AA1"), (5 * FRAME, 10 * FRAME, "B")])
    alignment = read_alignment(path, CONFIG)
    assert alignment.n_frames == 10
    assert fit(alignment, 11, path=path, config=CONFIG).durations == (5, 6)


@pytest.mark.parametrize("n_frames", [8, 12])
def test_more_than_one_frame_is_refused(tmp_path: Path, n_frames: int):
    with pytest.raises(InputError, match=f"10 frames .* the recording has {n_frames}"):
        fit(TextGridAlignment(phones=("AA1", "B"), durations=(5, 5)), n_frames, path=tmp_path, config=CONFIG)


def test_trimming_agrees_with_the_original(folder: Path):
    runs = read_golden(folder / "trim_silence.json", "runs")
    files = read_golden(folder / "expected.json", "files")
    assert any(run["clips"] for run in runs.values() if run["trim_silence"] is not None)
    for seconds, run in runs.items():
        if run["trim_silence"] is None:
            continue
        for clip, wanted in run["clips"].items():
            alignment = read_alignment(folder / files[clip]["file"], CONFIG)
            phones, durations, frames = trimmed(alignment, float(seconds))
            assert phones == wanted["phones"], (seconds, clip)
            assert durations == wanted["durations"], (seconds, clip)
            assert frames == wanted["mel_slice"], (seconds, clip)


def test_trimming_with_one_edge_silence_or_none_is_sensible(folder: Path):
    cases = read_golden(folder / "trim_silence.json", "single_edge_cases", "cases")
    files = read_golden(folder / "expected.json", "files")
    assert cases
    for case, wanted in cases.items():
        name, seconds = case.split("|trim=")
        alignment = read_alignment(folder / files[name]["file"], CONFIG)
        phones, durations, frames = trimmed(alignment, float(seconds))
        assert phones == wanted["intended_phones"], case
        assert durations == wanted["intended_durations"], case
        assert frames == wanted["intended_mel_slice"], case


def test_nothing_is_left_of_silence_alone():
    assert trimmed(TextGridAlignment(phones=("sil",), durations=(20,)), 0.0) == ([], [], [20, 20])


HEAD = 'File type = "ooTextFile"\nObject class = "TextGrid"\n\n0\n2\n<exists>\n1\n"IntervalTier"\n"phones"\n0\n2\n2\n'
LONG = """File type = "ooTextFile"
Object class = "TextGrid"

xmin = 0
xmax = 2
tiers? <exists>
size = 2
item []:
    item [1]:
        class = "TextTier"
        name = "events"
        xmin = 0
        xmax = 2
        points: size = 1
        points [1]:
            number = 0.5
            mark = "a ""loud"" noise"
    item [2]:
        class = "IntervalTier"
        name = "phones"
        xmin = 0
        xmax = 2
        intervals: size = 2
        intervals [1]:
            xmin = 0
            xmax = 1
            text = "AA1"
        intervals [2]:
            xmin = 1
            xmax = 2
            text = "K"
"""
TRUNCATED = "not a readable TextGrid: truncated, or a label is not in quotes"
WRONG_GRIDS = {
    "no quotes": (HEAD + '0\n1\nAA1\n1\n2\n"K"\n', TRUNCATED),
    "not closed": (HEAD + '0\n1\n"AA1\n1\n2\n"K"\n', TRUNCATED),
    "the last not closed": (HEAD + '0\n1\n"AA1"\n1\n2\n"K', TRUNCATED),
    "two labels": (HEAD + '0\n1\n"AA1" "B"\n1\n2\n"K"\n', TRUNCATED),
    "more than announced": (HEAD + '0\n1\n"AA1"\n1\n2\n"K"\n2\n3\n"T"\n', TRUNCATED),
    "fewer than announced": (HEAD + '0\n1\n"AA1"\n', TRUNCATED),
    "NaN": (HEAD + '0\nnan\n"AA1"\n1\n2\n"K"\n', "an interval begins at 0 s and ends at nan"),
    "backwards": (HEAD + '0\n1\n"AA1"\n2\n1\n"K"\n', "Start time 2.0 after end time 1.0"),
    "overlapping": (HEAD + '0\n1.2\n"AA1"\n1\n2\n"K"\n', "not a readable TextGrid: .*Overlap"),
    "a tier without end": (HEAD.replace("0\n2\n2\n", "0\ninf\n1\n") + '0\n1\n"K"\n', "the phones tier ends at inf s"),
    "a count that is none": (HEAD.replace("0\n2\n2\n", f"0\n2\n{'9' * 5000}\n") + '0\n1\n"K"\n', TRUNCATED),
    "another class": (HEAD.replace("TextGrid", "Pitch"), "no TextGrid; expected File type"),
    "long, no quotes": (LONG.replace('"AA1"', "AA1"), TRUNCATED),
    "points": (LONG.replace("phones", "words").replace("events", "phones"), "the phones tier holds points"),
    "utf-16 without a mark": (LONG.encode("utf-16-le"), "UTF-16 without a byte order mark has them"),
}


@pytest.mark.parametrize("name", WRONG_GRIDS)
def test_a_label_or_a_time_that_cannot_be_is_refused_in_one_line(tmp_path: Path, name: str):
    content, message = WRONG_GRIDS[name]
    path = tmp_path / "a.TextGrid"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=rf"a\.TextGrid:.*{message}") as caught:
        read_alignment(path, CONFIG)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_long_and_short_files_with_any_newlines_are_read_alike(tmp_path: Path, newline: str):
    path = tmp_path / "a.TextGrid"
    for text in (LONG, HEAD + '0\n1\n"AA1"\n1\n2\n"K"\n', LONG.replace("AA1", " AA1 ")):
        path.write_bytes(text.replace("\n", newline).encode("utf-16"))
        assert read_alignment(path, CONFIG).phones == ("AA1", "K")
