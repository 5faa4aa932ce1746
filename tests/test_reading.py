"""One long reading and its text become clips: where sentences lie, where they are cut, and what does not match."""

import csv
import multiprocessing
import os
import signal
from pathlib import Path

import numpy as np
import pytest
import soundfile

import common.importing.clips
from common.audio.levels import find_sound
from common.audio.wav import load_wav
from common.errors import InputError
from common.importing.cutting import CONFIDENT, AlignedReading, align_reading
from common.importing.frames import RATE
from common.importing.subtitles import read_subtitles
from common.text.espeak import Speaker
from scripts.import_recordings import main

READER = Speaker("en-gb", words_per_minute=185, pitch=80)  # in another voice than the one that is compared with
TEXT = (
    "The harbor was quiet, and nobody had seen the boat leave.",
    "Seven old lanterns were burning along the narrow wall!",
    "She wrote a letter to her brother in 1892, but he never answered it.",
    "Every winter the river froze over, and children skated to school.",
    "My uncle bought a clock that could not keep the time.",
    "We have always wondered what became of the tall stranger.",
)
OTHER = "Bright yellow mushrooms covered the floor of the forest."


def read_aloud(sentences: tuple[str, ...], *, speaker: Speaker = READER, gap: float = 0.5) -> tuple[np.ndarray, list]:
    """A recording (T,) of sentences with gaps, with soft noise, and where each one sounds (s)."""
    parts, sounds, at = [], [], 0.0
    for sentence in sentences:
        said = sentence.replace("1892", "eighteen ninety two")
        wave = 0.5 * np.pad(speaker.speak(said).wave, (round(gap * RATE), 0))
        at += len(wave) / RATE
        sounds.append((at - len(wave) / RATE + gap + speaker.edge_s, at - speaker.edge_s))
        parts.append(wave)
    parts.append(np.zeros(round(gap * RATE), np.float32))
    wave = np.concatenate(parts)
    return wave + 0.0005 * np.random.default_rng(0).standard_normal(len(wave)).astype(np.float32), sounds


def check_clips(reading: AlignedReading, sentences: tuple[str, ...], sounds: list) -> None:
    """Each of the sentences is a clip that is certain, and cut in the pauses around it."""
    clips = [clip for clip in reading.clips if clip.confidence >= CONFIDENT]
    assert [clip.text for clip in clips] == list(sentences)
    for clip, (start, end) in zip(clips, sounds):
        assert start - 0.5 < clip.start_s < start + 0.1
        assert end - 0.1 < clip.end_s < end + 0.5


@pytest.fixture(scope="module")
def recording() -> tuple[np.ndarray, list]:
    return read_aloud(TEXT)


def test_each_sentence_is_a_clip_between_the_pauses_around_it(recording: tuple[np.ndarray, list]):
    wave, sounds = recording
    reading = align_reading(np.array_split(wave, 7), TEXT)
    check_clips(reading, TEXT, sounds)
    assert reading.unmatched_text == ()


def test_what_only_the_recording_or_only_the_text_has_is_listed(recording: tuple[np.ndarray, list]):
    wave, sounds = recording
    text = (*TEXT[:2], *TEXT[3:5], OTHER, TEXT[5])
    reading = align_reading([wave], text)
    check_clips(reading, (*TEXT[:2], *TEXT[3:]), sounds[:2] + sounds[3:])
    assert reading.unmatched_text == (OTHER,)


def test_sentences_in_another_order_and_read_twice_are_found():
    order = (0, 2, 1, 3, 3, 4, 5)
    wave, _ = read_aloud(tuple(TEXT[place] for place in order))
    reading = align_reading([wave], TEXT)
    found = [TEXT.index(clip.text) for clip in reading.clips]
    assert found == [0, 2, 1, 3, 4, 5]


def test_a_text_that_is_not_read_gives_no_certain_clips(recording: tuple[np.ndarray, list]):
    other = tuple(f"{OTHER} {number} geese flew over it." for number in range(11, 17))
    reading = align_reading([recording[0]], other)
    assert not [clip for clip in reading.clips if clip.confidence >= CONFIDENT]


def test_words_that_are_not_said_make_a_clip_uncertain(recording: tuple[np.ndarray, list]):
    text = list(TEXT)
    text[3] = "Every winter the river froze over, and my sister never saw it."
    clips = align_reading([recording[0]], text).clips
    assert [clip.text for clip in clips if clip.confidence < CONFIDENT] == [text[3]]


def test_short_sentences_are_joined_and_long_ones_cut_at_pauses():
    short = ("Stop!", "Who is there?", "Nobody, said the wind.")
    clauses = [TEXT[0].rstrip("."), TEXT[3].rstrip(".").lower(), TEXT[4].rstrip(".").lower(), TEXT[5].lower()]
    text = (*short, "; ".join(clauses), TEXT[1])
    reading = align_reading([read_aloud(text, gap=0.4)[0]], text)
    assert all(2 <= clip.end_s - clip.start_s <= 12 for clip in reading.clips)
    assert " ".join(clip.text for clip in reading.clips) == " ".join(text)
    texts = [clip.text for clip in reading.clips]
    assert texts[0].startswith(" ".join(short[:2])) and texts[-1] == TEXT[1]
    assert any(text[3].startswith(one) and one.endswith(";") for one in texts)


def test_clips_of_a_real_voice_are_cut_between_them(shared_data: Path):
    lines = (shared_data / "LJSpeech-sample/metadata.csv").read_text(encoding="utf-8").splitlines()[8:14]
    clips = [line.split("|")[:2] for line in lines]
    waves = [soundfile.read(shared_data / f"LJSpeech-sample/wavs/{name}.wav", dtype="float32")[0] for name, _ in clips]
    gap = np.zeros(round(0.3 * RATE), np.float32)
    blocks = [block for wave in waves for block in (gap, wave)]
    text = tuple(text for _, text in clips)
    reading = align_reading(blocks, text)
    assert tuple(clip.text for clip in reading.clips) == text
    ends = np.cumsum([len(gap) + len(wave) for wave in waves]) / RATE
    for clip, end, after in zip(reading.clips, ends, reading.clips[1:]):
        assert end - 0.2 < clip.end_s <= after.start_s < end + 0.5


SRT = """\ufeff1
00:00:01,500 --> 00:00:03,000 X1:1
<i>Good &amp; new</i>
[music] day.

2
00:00:00,5 --> 00:00:01,0
- {\\an8}MR. A: Oh!
"""
VTT = """WEBVTT

NOTE made by hand

a
00:01.500 --> 00:03.000 align:start
<v Ann>Good &amp; new
day.

00:00.500 --> 01:00:01.000
Oh!

00:09.0 --> 00:10.0
♪
"""


@pytest.mark.parametrize(("name", "text"), [("a.srt", SRT), ("a.vtt", VTT)])
def test_subtitles_give_their_text_in_the_order_of_their_times(tmp_path: Path, name: str, text: str):
    (tmp_path / name).write_text(text, encoding="utf-8", newline="\r\n")
    assert read_subtitles(tmp_path / name).strip() == "Oh! Good & new day."


def read_table(target: Path) -> list[dict[str, str]]:
    with (target / "import.tsv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def clip_times(target: Path) -> dict[str, int]:
    """When each clip was written; they are those that the lists name."""
    times = {path.stem: path.stat().st_mtime_ns for path in (target / "wavs").iterdir()}
    lines = (target / "metadata.csv").read_text(encoding="utf-8").splitlines()
    assert times.keys() == {line.split("|")[0] for line in lines}
    assert times.keys() == {row["clip"] for row in read_table(target) if row["state"] == "imported"}
    return times


def write_chapters(source: Path) -> None:
    """Three recordings of two sentences each, and their texts."""
    source.mkdir()
    for number in range(3):
        said = TEXT[2 * number : 2 * number + 2]
        soundfile.write(source / f"ch{number}.wav", read_aloud(said)[0], RATE)
        (source / f"ch{number}.txt").write_text("\n".join(said), encoding="utf-8")


def test_names_in_capitals_stay_and_descriptions_of_sounds_go(tmp_path: Path):
    cues = {
        "The space agency (NASA) landed.": "The space agency (NASA) landed.",
        "(UN) and (UNESCO) met.": "(UN) and (UNESCO) met.",
        "(LAUGHS) No. (DOG BARKS) (MAN SPEAKING GERMAN)": "No.",
        "(IN SPANISH) Hello.": "Hello.",
        "The body (UNITED NATIONS) met. [music]": "The body (UNITED NATIONS) met.",
    }
    lines = [f"00:00:0{number},0 --> 00:00:0{number},9\n{cue}\n\n" for number, cue in enumerate(cues)]
    (tmp_path / "a.srt").write_text("".join(lines))
    assert read_subtitles(tmp_path / "a.srt") == " ".join(cues.values())
    for bad in ("9" * 5000 + ":00:01,0", "noon"):
        (tmp_path / "a.srt").write_text(f"{bad} --> 00:00:09,0\nA\n")
        with pytest.raises(InputError, match=r"a\.srt: .*-->") as error:
            read_subtitles(tmp_path / "a.srt")
        assert len(str(error.value)) < 300 + len(str(tmp_path)) and "\n" not in str(error.value)


@pytest.mark.parametrize("how", ["SIGINT", "kill"])
def test_a_run_that_is_stopped_keeps_finished_recordings_and_resumes(tmp_path: Path, monkeypatch, how: str, capsys):
    write_chapters(source := tmp_path / "source")
    target = tmp_path / "target"
    words = [str(source), str(target), "--cut-longer", "5", "--num-workers", "1"]
    save = common.importing.clips.save_wav

    def stop_at_last_clip(path, *args, **settings):
        if path.stem == "ch1_0002":
            assert (path.parent / "ch1_0001.wav").is_file()  # which no list names
            if how == "kill":
                os._exit(9)
            os.kill(os.getpid(), signal.SIGINT)
        save(path, *args, **settings)

    with monkeypatch.context() as patched:
        patched.setattr("common.importing.clips.save_wav", stop_at_last_clip)
        if how == "kill":
            process = multiprocessing.get_context("fork").Process(target=main, args=(words,))
            process.start()
            process.join()
            assert process.exitcode == 9 and (target / "wavs/ch1_0001.wav").exists()
            (source / "ch1.wav").rename(source / "part1.wav")
            (source / "ch1.txt").rename(source / "part1.txt")
        else:
            assert main(words) == 128 + signal.SIGINT
            assert "2 recordings remain; run the same command to resume" in capsys.readouterr().out
            assert clip_times(target).keys() == {"ch0_0001", "ch0_0002"}
    first = (target / "wavs/ch0_0001.wav").stat().st_mtime_ns
    assert main(words) == 0
    assert len(times := clip_times(target)) == 6 and times["ch0_0001"] == first


def test_only_what_has_changed_is_aligned_again_and_what_is_damaged_is_listed(tmp_path: Path, capsys):
    write_chapters(source := tmp_path / "source")
    (source / "damaged.wav").write_bytes(b"RIFF")
    (source / "damaged.txt").write_text(TEXT[0])
    (source / "ch0.txt").rename(source / "ch0.srt")
    (source / "ch0.srt").write_text(f"1\n00:00:00,1 --> 00:00:09,0\n{TEXT[0]}\n{TEXT[1]}\n{OTHER}\n")
    words = [str(source), str(tmp_path / "target"), "--cut-longer", "5", "--num-workers", "1"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "not a sound file" in out and f"not found in the recording: {OTHER}" in out
    before = clip_times(tmp_path / "target")
    assert len(before) == 6
    assert main(words) == 0 and clip_times(tmp_path / "target") == before
    assert "6 of them kept" in capsys.readouterr().out
    (source / "ch1.txt").write_text(TEXT[2], encoding="utf-8")
    (source / "ch2.wav").unlink()
    assert main(words) == 0
    after = clip_times(tmp_path / "target")
    assert after.keys() == before.keys() - {"ch1_0002", "ch2_0001", "ch2_0002"}
    assert {name for name in after if after[name] == before[name]} == {"ch0_0001", "ch0_0002"}
    assert main([*words, "--language", "en-gb"]) == 0
    assert not {*clip_times(tmp_path / "target").values()} & {*after.values()}


@pytest.mark.slow
def test_boundaries_of_80_clips_in_a_row_are_right(shared_data: Path):
    """97 % of the boundaries lie in the true pause, or within 0.1 s of it, and at most one certain clip is false."""
    rng, data = np.random.default_rng(0), shared_data / "LJSpeech-sample"
    lines = [line.split("|")[:2] for line in (data / "metadata.csv").read_text(encoding="utf-8").splitlines()]
    blocks, sounds, at = [], [], 0.0
    for name, _ in lines:
        gap = np.zeros(round(rng.uniform(0.1, 2) * RATE), np.float32)
        wave = load_wav(data / "wavs" / f"{name}.wav", sampling_rate=RATE).numpy()
        sound = find_sound(wave, RATE)
        sounds.append((at + len(gap) / RATE + sound.start, at + len(gap) / RATE + sound.end))
        at += (len(gap) + len(wave)) / RATE
        blocks += [gap, wave]
    reading = align_reading(blocks, [text for _, text in lines])
    starts, ends = [start for start, _ in sounds], [end for _, end in sounds]
    near = n_false = 0
    for (_, text), (start, end), before, after in zip(lines, sounds, [0.0, *ends], [*starts[1:], at]):
        clip = next((one for one in reading.clips if one.start_s < (start + end) / 2 < one.end_s), None)
        if clip is not None and text in clip.text:
            near += clip.text != text or (
                before - 0.1 < clip.start_s < start + 0.1 and end - 0.1 < clip.end_s < after + 0.1
            )
        elif clip is not None:
            n_false += clip.confidence >= CONFIDENT
    assert near / len(lines) >= 0.95 and n_false <= 1
