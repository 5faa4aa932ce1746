"""extract_mels.py --report names each fault that was planted in a corpus, and no clean clip."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
import soundfile
from corpus import RATE, glide
from page_reader import PageReader
from test_failing_writes import ended
from tiny_voice import SMALL, save_voice

import extract_mels
from common.config import AudioConfig
from common.data_report.findings import KINDS
from common.text.config import TextConfig

WORDS = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen".split()


@pytest.fixture
def report(capsys: pytest.CaptureFixture):
    """Run the command in this process: (exit status, stdout, stderr)."""

    def call(folder: Path, *options: object, lists: tuple[str, ...] = ("train.txt",)) -> tuple[int, str, str]:
        words = ["--report", "-d", folder, "--wav-text-filelist", *(folder / name for name in lists)]
        words += ["--num-workers", 1, *options]
        status = ended(extract_mels.main, *words)
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return status, out, err

    return call


def speak(index: int, *, seconds: float = 1.2) -> np.ndarray:
    """A clean clip: a gliding tone over a faint noise, no two alike."""
    wave = glide(seconds + 0.01 * (index % 7), low=120 + 2 * (index % 5), high=200 + 3 * (index % 7))
    return wave + 0.0003 * np.random.default_rng(index).standard_normal(len(wave))


def add(folder: Path, name: str, wave: np.ndarray, *, rate: int = RATE, subtype: str = "PCM_16") -> None:
    (folder / "wavs").mkdir(parents=True, exist_ok=True)
    soundfile.write(folder / "wavs" / f"{name}.wav", wave, rate, subtype=subtype)


def clean_corpus(folder: Path, n_clips: int = 12) -> list[str]:
    """Clips without a fault; the lines of their list."""
    for index in range(n_clips):
        add(folder, f"c{index:02d}", speak(index))
    return [f"wavs/c{index:02d}.wav|clip {WORDS[index]}." for index in range(n_clips)]


def write_list(folder: Path, lines: list[str], name: str = "train.txt") -> None:
    (folder / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def read(folder: Path) -> dict:
    return json.loads((folder / "data_report" / "report.json").read_text(encoding="utf-8"))


def found(folder: Path) -> set[tuple[str, str]]:
    """Kind and recording of each finding."""
    return {(finding["kind"], finding["wav"]) for finding in read(folder)["findings"]}


def test_a_clean_corpus_has_no_findings_even_where_it_is_to_be_strict(tmp_path: Path, report):
    write_list(tmp_path, clean_corpus(tmp_path))
    status, out, _ = report(tmp_path, "--report-strict")
    assert status == 0, out
    assert "12 clips" in out and "all clean" in out and "wavs/" not in out
    figures = read(tmp_path)
    assert (figures["findings"], figures["n_clips"], len(figures["clips"])) == ([], 12, 12)
    first = figures["clips"][0]
    assert (first["leading silence"], first["trailing silence"]) == pytest.approx((0.1, 0.1), abs=0.011)
    assert first["duration"] == pytest.approx(1.2) and first["n_symbols"] == len("clip one.")
    assert first["peak"] == pytest.approx(20 * np.log10(np.abs(speak(0)).max()), abs=0.01)
    speech = speak(0)[round(0.1 * RATE) : -round(0.1 * RATE)]
    assert first["speech level"] == pytest.approx(20 * np.log10(np.sqrt(np.mean(speech**2))), abs=0.1)
    assert first["pitch, median"] == pytest.approx(160, abs=4)  # a glide from 120 to 200 Hz
    assert figures["hours"] == pytest.approx(sum(clip["duration"] for clip in figures["clips"]) / 3600)


def planted_faults(folder: Path) -> dict[str, str]:
    """One clip for each fault that the sound alone has, made from what would be a clean one: name -> kind."""
    wave, noise = speak(90), np.random.default_rng(1).standard_normal(RATE)
    faults = {
        "clipped": ("clipping", np.clip(3 * wave, -0.9, 0.9), {}),
        "lead": ("silence", np.concatenate([0.0003 * noise, wave]), {}),
        "pause": ("pause", np.concatenate([wave, np.zeros(3 * RATE), speak(91)]), {}),
        "quiet": ("near_silent", 0.004 * speak(92), {}),
        "faint": ("level", 0.06 * speak(93), {}),
        "offset": ("dc_offset", 0.5 * speak(94) + 0.1, {}),
        "noise": ("unvoiced", 0.2 * noise, {}),
        "high": ("pitch", glide(1.2, low=350, high=450), {}),
        "rate": ("sampling_rate", speak(95)[::2], {"rate": RATE // 2}),
        "stereo": ("channels", np.stack([speak(96), 0.5 * speak(96)], axis=1), {}),
        "cut": ("unreadable", speak(97), {}),
        "nan": ("unreadable", np.where(np.arange(RATE) == 9, np.nan, speak(98)[:RATE]), {"subtype": "FLOAT"}),
        "loud": ("range", 4 * speak(99), {"subtype": "FLOAT"}),
        "alaw": ("format", speak(89), {"subtype": "ALAW"}),
        "tiny": ("too_short", speak(88)[3000:3300], {}),
        "blip": ("short", speak(87)[4000:8000], {}),
        "endless": ("long", np.concatenate([speak(100 + index) for index in range(18)]), {}),
        "zeros": ("near_silent", np.zeros(RATE), {}),
        "constant": ("near_silent", np.full(RATE, 0.001), {}),
    }
    for name, (_, samples, how) in faults.items():
        add(folder, name, samples, **how)
    path = folder / "wavs" / "cut.wav"
    path.write_bytes(path.read_bytes()[:20000])
    return {**{name: kind for name, (kind, _, _) in faults.items()}, "gone": "missing"}


def test_each_planted_fault_is_named_with_its_line_and_no_clean_clip_is(tmp_path: Path, report):
    lines = clean_corpus(tmp_path)
    faults = planted_faults(tmp_path)
    texts = dict(zip(faults, (f"{a} {b}." for a in WORDS for b in ("red", "blue"))))
    lines += [f"wavs/{name}.wav|{texts[name]}" for name in faults]
    write_list(tmp_path, lines)
    status, out, _ = report(tmp_path)
    assert status == 1  # files are missing and unreadable
    findings = found(tmp_path)
    assert {(kind, f"wavs/{name}.wav") for name, kind in faults.items()} <= findings
    assert {wav for _, wav in findings if re.fullmatch(r"wavs/c\d\d\.wav", wav)} == set()
    assert findings.isdisjoint({("clipping", "wavs/zeros.wav"), ("clipping", "wavs/constant.wav")})
    for number, name in enumerate(faults, start=13):
        assert re.search(rf"train\.txt:{number} +wavs/{name}\.wav ", out), name
    for kind in set(faults.values()):
        assert KINDS[kind]["title"] in out and KINDS[kind]["advice"] in out
    reasons = {finding["wav"]: finding["reason"] for finding in read(tmp_path)["findings"]}
    assert reasons["wavs/cut.wav"].startswith("truncated, ")
    assert reasons["wavs/nan.wav"] == "empty, or contains non-finite samples"
    assert reasons["wavs/rate.wav"] == "11025 Hz, expected 22050"


def test_texts_and_copies_are_named_too(tmp_path: Path, report):
    lines = clean_corpus(tmp_path)
    shutil.copyfile(tmp_path / "wavs" / "c00.wav", tmp_path / "wavs" / "copy.wav")
    data, rate = soundfile.read(tmp_path / "wavs" / "c01.wav", dtype="int16")
    soundfile.write(tmp_path / "wavs" / "same.flac", data, rate)
    for index, name in enumerate(("empty", "dots", "odd", "long_text", "wrong", "twice", "damaged")):
        add(tmp_path, name, speak(50 + index))
    lines += [
        "wavs/copy.wav|another text.",
        "wavs/same.flac|more words here.",
        "wavs/empty.wav|",
        "wavs/dots.wav|\t",
        "wavs/odd.wav|a # c ß.",
        "wavs/long_text.wav|" + 20 * "too long a text ",
        "wavs/wrong.wav|this is the transcript of quite another line, as anyone can see.",
        "wavs/twice.wav|clip two.",
        "wavs/damaged.wav|a caf\ufffd for us",
        "wavs/c02.wav|clip three.",
    ]
    write_list(tmp_path, lines)
    status, out, _ = report(tmp_path, "--text-cleaners", "basic_cleaners")
    assert status == 0  # the report is no judge: every file can be read
    wanted = {
        ("same_audio", "wavs/copy.wav"),
        ("same_audio", "wavs/same.flac"),
        ("empty_text", "wavs/empty.wav"),
        ("empty_text", "wavs/dots.wav"),
        ("unknown_symbols", "wavs/odd.wav"),
        ("unknown_symbols", "wavs/damaged.wav"),
        ("too_few_frames", "wavs/long_text.wav"),
        ("speaking_rate", "wavs/long_text.wav"),
        ("speaking_rate", "wavs/wrong.wav"),
        ("same_text", "wavs/twice.wav"),
        ("same_path", "wavs/c02.wav"),
    }
    assert found(tmp_path) == wanted
    assert "'#' (U+0023)" in out and "'ß' (U+00DF)" in out
    assert report(tmp_path, "--text-cleaners", "basic_cleaners", "--report-strict")[0] == 1


def test_what_two_lists_share_is_named_and_a_character_that_cleaners_rewrite_is_no_finding(tmp_path: Path, report):
    lines = clean_corpus(tmp_path)
    lines[3] = "wavs/c03.wav|café for"
    shutil.copyfile(tmp_path / "wavs" / "c05.wav", tmp_path / "wavs" / "other.wav")
    add(tmp_path, "again", speak(70))
    add(tmp_path, "new", speak(71))
    write_list(tmp_path, lines)
    shared = [lines[4], "wavs/other.wav|words.", "wavs/again.wav|clip seven.", "wavs/new.wav|new one."]
    write_list(tmp_path, shared, "val.txt")
    report(tmp_path, lists=("train.txt", "val.txt"))
    overlap = {item["wav"]: item["reason"] for item in read(tmp_path)["findings"] if item["kind"] == "overlap"}
    assert set(overlap) == {"wavs/c04.wav", "wavs/other.wav", "wavs/again.wav"}
    assert overlap["wavs/again.wav"].startswith("the same text as wavs/c06.wav (")
    assert overlap["wavs/other.wav"].startswith("the same recording as wavs/c05.wav (")
    assert not any(one["wav"] == "wavs/c03.wav" for one in read(tmp_path)["findings"])


def test_speakers_are_compared_with_themselves_and_counted(tmp_path: Path, report):
    lines = []
    for index in range(10):
        for name, low in (("ann", 220), ("bob", 110)):
            add(tmp_path, f"{name}{index}", glide(1.0 + 0.01 * index, low=low, high=1.3 * low))
            lines.append(f"wavs/{name}{index}.wav|clip {WORDS[index]}|{name}")
    lines[2] = lines[2].replace("|ann", "|bob")  # Ann's clip under Bob's name
    write_list(tmp_path, lines)
    report(tmp_path)
    assert found(tmp_path) == {("pitch", "wavs/ann1.wav"), ("same_text", "wavs/bob1.wav")}
    figures = read(tmp_path)
    speakers = {speaker["name"]: speaker for speaker in figures["speakers"]}
    assert {name: speaker["n_clips"] for name, speaker in speakers.items()} == {"ann": 9, "bob": 11}
    assert speakers["ann"]["pitch_median"] == pytest.approx(253, rel=0.03)
    assert any("ann (9), bob (11)" in note for note in figures["notes"])


def test_the_page_plays_what_was_found_and_words_of_the_corpus_stay_words(tmp_path: Path, report):
    lines = clean_corpus(tmp_path)
    add(tmp_path, "<img src=x>", np.concatenate([speak(100 + index) for index in range(18)]))
    write_list(tmp_path, [*lines, "wavs/<img src=x>.wav|<script>alert(1)</script>", "wavs/gone.wav|<b>$x^"])
    report(tmp_path, "--text-cleaners", "basic_cleaners")
    page = PageReader((tmp_path / "data_report" / "report.html").read_text(encoding="utf-8"))
    assert len(page.scripts) == 1 and page.tags.isdisjoint({"b$", "x"}) and "<b>$x^" in page.text
    assert len(page.sources["img"]) == 5
    assert all(source.startswith("data:image/svg+xml,") for source in page.sources["img"])
    assert {unquote(source) for source in page.sources["audio"]} == {"../wavs/<img src=x>.wav"}
    clips = next(table for table in page.tables if table.headings[-1] == "text")
    assert "long clips" in page.text and "missing files" in page.text
    figures = read(tmp_path)["distributions"]
    assert [f"{name} ({values['unit']})" for name, values in figures.items()] == list(page.glossary)
    assert set(page.glossary) <= set(clips.headings) and set(page.glossary.values()) == set(clips.hints)
    assert [row[0][0] for row in clips.rows[:3]] == ["wavs/<img src=x>.wav", "wavs/gone.wav", "wavs/c00.wav"]
    assert len(clips.rows) == 14 and clips.rows[1][clips.headings.index("duration (s)")] == ("-", "")


def test_an_aligner_compares_the_transcripts_that_training_would_take(tmp_path: Path, report):
    lines = clean_corpus(tmp_path, 9)
    add(tmp_path, "stereo", np.stack([speak(7), speak(7)], axis=1))
    write_list(tmp_path, ["wavs/stereo.wav|two channels.", "wavs/none.wav|no file.", *lines])
    voices = {
        name: save_voice(
            tmp_path / name, text=TextConfig(), model=replace(SMALL, learned_alignment=aligns), audio=AudioConfig()
        )
        for name, aligns in (("aligner.pt", True), ("without.pt", False))
    }
    status, _, _ = report(tmp_path, "--report-checkpoint", voices["aligner.pt"])
    assert status == 1  # as a file is missing
    found = {clip["wav"]: clip.get("misfit", -1) for clip in read(tmp_path)["clips"]}
    assert [wav for wav, misfit in found.items() if misfit >= 0] == [line.partition("|")[0] for line in lines]
    status, _, err = report(tmp_path, "--report-checkpoint", voices["without.pt"])
    assert status == 2 and "no aligner; give a FastPitch with a learned alignment" in err


def test_real_clips_are_clean_over_two_processes_as_in_one(shared_data: Path, tmp_path: Path, report):
    source = shared_data / "LJSpeech-sample"
    (tmp_path / "wavs").symlink_to(source / "wavs")
    rows = [row.split("|") for row in (source / "metadata.csv").read_text(encoding="utf-8").splitlines()]
    write_list(tmp_path, [f"wavs/{name}.wav|{text}" for name, text, _ in rows])
    status, out, _ = report(tmp_path, "--report-strict", "--num-workers", 2)
    assert status == 0 and "80 clips, 0:08:48 of speech: all clean" in out
    both = read(tmp_path)
    report(tmp_path)
    assert read(tmp_path) == both
    assert len(both["clips"]) == 80 and both["distributions"]["pitch, median"]["median"] == pytest.approx(210, abs=15)
