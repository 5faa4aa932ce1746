"""Recordings as people have them become a corpus: formats, layouts, and refusals with the command that helps."""

import csv
import json
import os
import shlex
import sys
from pathlib import Path

import numpy as np
import pyloudnorm
import pytest
import scipy.signal
import soundfile
import soxr
from corpus import encode_aac, glide
from shell import ROOT

from common.audio.levels import find_sound
from common.errors import InputError, OptionError
from scripts.datasets import describe_mels, make_filelists
from scripts.import_recordings import main, main as import_recordings

RATE = 22050


def write_sound(path: Path, wave: np.ndarray | None = None, rate: int = RATE, **how: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, glide(1.0, rate=rate) if wave is None else wave, rate, **how)
    return path


def run_import(source: Path, target: Path, *words: str) -> int:
    return main([str(source), str(target), "--num-workers", "1", *words])


def table(target: Path) -> dict[str, dict[str, str]]:
    """Rows of import.tsv by their source."""
    with (target / "import.tsv").open(newline="") as file:
        return {row["source"]: row for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)}


def metadata(target: Path) -> dict[str, str]:
    return dict(line.split("|") for line in (target / "metadata.csv").read_text().splitlines())


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def test_every_format_becomes_the_same_clip_and_nothing_of_the_source_changes(tmp_path: Path, capsys):
    source, target = tmp_path / "source", tmp_path / "target"
    wave = glide(1.0, rate=44100)
    stereo = np.stack([wave, 0.5 * wave], axis=1)
    forms = {"u8.wav": "PCM_U8", "s16.wav": "PCM_16", "s24.wav": "PCM_24", "s32.wav": "PCM_32", "law.wav": "ULAW"}
    for name, subtype in forms.items():
        write_sound(source / name, stereo, 44100, subtype=subtype)
    write_sound(source / "loud.wav", 7 * stereo, 44100, subtype="DOUBLE")
    write_sound(source / "six.wav", np.stack([wave] * 6, axis=1), 44100, subtype="FLOAT")
    for name in ("a.flac", "b.mp3", "c.ogg"):
        write_sound(source / name, stereo, 44100)
    write_sound(source / "d.opus", soxr.resample(stereo, 44100, 48000), 48000, format="OGG", subtype="OPUS")
    (source / "mp3.WAV").write_bytes((source / "b.mp3").read_bytes())
    encode_aac(source / "e.m4a", stereo, 44100)
    encode_aac(source / "f.aac", stereo, 44100, "adts")
    (source / "g.wav").write_bytes((source / "e.m4a").read_bytes())
    names = [path.stem for path in source.iterdir()]
    (source / "metadata.csv").write_text("".join(f"{name}|Text of {name}.\n" for name in names))
    before = contents(source)
    assert run_import(source, target) == 0
    assert contents(source) == before
    assert metadata(target) == {name: f"Text of {name}." for name in sorted(names)}
    clips = {name: soundfile.read(target / "wavs" / f"{name}.wav")[0] for name in names}
    for name, clip in clips.items():
        about = soundfile.info(target / "wavs" / f"{name}.wav")
        assert (about.samplerate, about.channels, about.subtype) == (RATE, 1, "PCM_16")
        lag = scipy.signal.correlate(clip, clips["s16"]).argmax() - len(clips["s16"]) + 1
        overlap = min(len(clip), len(clips["s16"])) - abs(lag)
        pair = clip[max(lag, 0) :][:overlap], clips["s16"][max(-lag, 0) :][:overlap]
        assert abs(lag) < 0.03 * RATE and np.corrcoef(*pair)[0, 1] > 0.99, name
        assert pyloudnorm.Meter(RATE).integrated_loudness(clip) == pytest.approx(-23, abs=0.1)
    assert "14 from 44100 Hz, 1 from 48000 Hz" in capsys.readouterr().out


# Files of texts and recordings, and the clips with their texts that become of them.
LAYOUTS = json.loads((ROOT / "tests/import_layouts.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_transcripts_are_found_wherever_they_are(layout: str, tmp_path: Path, capsys):
    texts, recordings, wanted = LAYOUTS[layout].values()
    source, target = tmp_path / "source", tmp_path / "target"
    for name in recordings:
        write_sound(source / name)
    for name, text in texts.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text, encoding="utf-8")
    assert run_import(source, target) == 0
    assert metadata(target) == wanted
    assert ("1; 2 with --speakers folders" in capsys.readouterr().out) == (layout == "sessions of one speaker")
    written = {path.relative_to(target / "wavs").with_suffix("").as_posix() for path in target.rglob("*.wav")}
    assert written == wanted.keys()
    speakers = sorted({clip.split("/")[0] for clip in wanted if "/" in clip})
    listed = target / "speakers.txt"
    assert (listed.read_text().splitlines() if listed.exists() else []) == speakers


def test_silence_and_noise_at_the_ends_are_cut_where_speech_begins_and_ends(tmp_path: Path, shared_data: Path):
    paths = sorted((shared_data / "LJSpeech-sample/wavs").glob("*.wav"))[1:80:8]
    generator = np.random.default_rng(0)
    lost: dict[str, list[float]] = {"quiet": [], "white noise": [], "rumble": []}  # s of sound at each end
    for path in paths:
        speech, rate = soundfile.read(path, dtype="float32")
        before, after = np.round(generator.uniform(3, 5, 2) * rate).astype(int)
        alone = find_sound(speech, rate)
        assert alone.start < 0.1 and alone.end > len(speech) / rate - 0.12
        padded = np.pad(speech, (before, after)) + 0.01
        white = generator.standard_normal(len(padded)) * np.sqrt(np.mean(speech**2)) / 10  # 20 dB
        rumble = scipy.signal.lfilter([1], [1, -0.995], white) / 10
        for name, noise in zip(lost, (0, white, rumble)):
            found = find_sound(np.float32(padded + noise), rate)
            lost[name] += [found.start - before / rate - alone.start, before / rate + alone.end - found.end]
    assert np.abs(lost["quiet"]).max() < 0.05 and np.abs(lost["rumble"]).max() < 0.15
    assert np.mean(np.abs(lost["white noise"]) < 0.1) >= 0.9 and np.abs(lost["white noise"]).max() < 0.2


@pytest.mark.parametrize("level, end", [(-50, 1.2), (-60, 1.0)])
def test_a_fading_sound_counts_as_far_as_55_db_below_the_speech(level: float, end: float):
    generator = np.random.default_rng(0)
    parts = ((1.0, 0), (0.2, level), (0.5, -68))  # s, dB
    noise = [10 ** (decibels / 20 - 1) * generator.standard_normal(round(22050 * s)) for s, decibels in parts]
    assert find_sound(np.float32(np.concatenate(noise)), 22050).end == pytest.approx(end, abs=0.02)


def test_a_clip_keeps_a_little_silence_one_loudness_and_no_clipped_peak(tmp_path: Path, shared_data: Path, capsys):
    source, target = tmp_path / "source", tmp_path / "target"
    speech, rate = soundfile.read(shared_data / "LJSpeech-sample/wavs/LJ001-0002.wav")
    click = speech.copy()
    click[rate // 2] = 1.0
    silence = np.zeros(4 * rate)
    waves = {"quiet": speech / 100, "loud": 9 * speech, "silent ends": np.r_[silence, speech, silence], "peak": click}
    waves |= {"shifted": speech + 0.2, "long": np.tile(speech, 11)}
    for name, wave in waves.items():
        write_sound(source / f"{name}.wav", wave, rate, subtype="FLOAT")
        (source / f"{name}.txt").write_text("in being comparatively modern.")
    assert run_import(source, target, "--cut-longer", "0") == 0
    rows = {Path(name).stem: row for name, row in table(target).items()}
    for name, row in rows.items():
        clip, _ = soundfile.read(target / "wavs" / f"{row['clip']}.wav")
        assert np.abs(clip).max() <= 10 ** (-1 / 20) + 1e-4 and abs(clip.mean()) < 0.002
        loudness = pyloudnorm.Meter(rate).integrated_loudness(clip)
        assert loudness == pytest.approx(-23, abs=0.1) or (name == "peak" and loudness < -23)
    cut = [float(rows["silent ends"][name]) for name in ("cut_at_start", "cut_at_end")]
    assert cut == pytest.approx([3.85, 3.85], abs=0.1)
    assert float(rows["quiet"]["gain"]) == pytest.approx(float(rows["shifted"]["gain"]) + 40, abs=0.1)
    assert "note: clips longer than 20 s: long (21 s)" in capsys.readouterr().out


def test_what_cannot_be_taken_is_listed_with_the_reason_and_the_rest_is_made(tmp_path: Path, capsys):
    source, target = tmp_path / "source", tmp_path / "target"
    reasons = {
        "silent.wav": "silent",
        "click.wav": "0.05 s of sound, expected at least 0.3",
        "nan.wav": "contains non-finite samples",
        "cut.wav": "truncated, its header states more samples than it contains",
        "half.flac": "damaged or truncated",
        "text.wav": "not a sound file that libsndfile or FFmpeg can decode, or empty or truncated",
        "empty.wav": "not a sound file that libsndfile or FFmpeg can decode, or empty or truncated",
        "opposite.wav": "its channels cancel each other out; export one of them",
        "part.mp3": "truncated, 83567 of 88200 samples",
        "no words.wav": "the transcript is empty (metadata.csv:10)",
        "twice.wav": "two transcripts that differ (metadata.csv:11 and metadata.csv:12)",
        "same.mp3": "same.wav has the same name and is used instead",
        "left.wav": "no transcript",
        "metadata.csv:14": "no recording called absent",
        "metadata.csv:15": "2 recordings are called 1: x/1.wav, y/1.wav",
        "metadata.csv:16": "names no recording, or has no text",
        "x/1.wav": "no transcript",
        "y/1.wav": "no transcript",
    }
    for name in (*reasons, "same.wav", "good.wav"):
        if not name.startswith("metadata"):
            write_sound(source / name)
    write_sound(source / "silent.wav", np.zeros(RATE))
    write_sound(source / "click.wav", np.r_[np.zeros(RATE), glide(1.0)[5000:6000], np.zeros(RATE)])
    write_sound(source / "nan.wav", np.full(RATE, np.nan), subtype="FLOAT")
    write_sound(source / "opposite.wav", np.outer(glide(1.0), [1, -0.8]))
    for name in ("cut.wav", "half.flac", "part.mp3"):
        write_sound(source / name, np.random.default_rng(0).standard_normal(4 * RATE) / 9)
        os.truncate(source / name, 20000)
    (source / "text.wav").write_text("no sound at all, but words\n" * 99)
    (source / "empty.wav").write_bytes(b"")
    lines = [f"{name}|text" for name in reasons if "." in name and "/" not in name][:9]
    lines += ["no words|", "twice|one", "twice|two", "same|three", "absent|text", "1|text", "|text", "good|well"]
    (source / "metadata.csv").write_text("\n".join(lines))
    assert run_import(source, target) == 0
    rows = table(target)
    assert {name: row["reason"] for name, row in rows.items() if row["state"] == "refused"} == reasons
    assert metadata(target) == {"good": "well", "same": "three"}
    out = capsys.readouterr().out
    assert f"left out: {len(reasons)}, all listed in {target}/import.tsv" in out
    out = out.replace(shlex.quote(str(target)), "target").replace(str(target), "target")
    assert out.count("\n") < 24 and max(map(len, out.splitlines())) < 160
    (source / "metadata.csv").write_text("silent|text\n")
    assert run_import(source, target) == 1
    assert metadata(target) == {} and not [*target.rglob("*.wav")]


@pytest.mark.parametrize(
    ("files", "target", "error", "message"),
    [
        ("", "target", InputError, "source: no such folder"),
        ("a.txt", "target", InputError, r"source: no recordings \(\.wav, \.flac"),
        ("a.wav b.txt", "target", InputError, r"source: no transcripts found; looked for metadata\.csv .* a\.lab"),
        ("a.wav a.txt", "source", OptionError, "source: would overwrite the recordings"),
        ("a.wav a.txt", "source/new", OptionError, "source/new: is inside .*source, which must not be changed"),
        ("a.wav a.txt", "other", OptionError, "other: contains a corpus that this command did not make"),
    ],
)
def test_wrong_folders_are_one_line(tmp_path: Path, files: str, target: str, error: type, message: str):
    for name in files.split():
        write_sound(tmp_path / "source" / "a.wav")
        (tmp_path / "source" / name).write_text("text") if name.endswith(".txt") else None
    if files == "a.txt":
        (tmp_path / "source/a.wav").unlink()
    (tmp_path / "other").mkdir()
    (tmp_path / "other/metadata.csv").write_text("a|text\n")
    before = contents(tmp_path)
    with pytest.raises(error, match=message) as raised:
        run_import(tmp_path / "source", tmp_path / target)
    assert len(str(raised.value).replace(str(tmp_path), "")) < 160 and contents(tmp_path) == before


def test_one_bad_file_never_ends_an_import(tmp_path: Path, capsys):
    source, target = make_source(tmp_path / "source", 2), tmp_path / "target"
    bad = {
        "zeros.flac": bytes(20000),
        "slow.flac": b"",
        "a\n.wav": b"RIFF",
        "deep.json": b"[" * 100000,
        "odd.json": b"{'text': 1}",
        "half.json": b"\xff\xfe\0",
        "latin.csv": "c0|Grüße\n".encode("latin-1"),
        "half.srt": b"\xff",
        "config.json": b'{"n": ' + b"9" * 5000 + b"}",
        "unclosed.csv": b'u1,"one\nu2,"two, and"\nu3,"three\nlines"\nu4,"four\n\n',
        "lines.jsonl": b'{"path": "h1", "text": "\\ud800"}\n{"path": "h2", "text": "good", "n": 1e999}\n[[\n'
        b'{"path": "h3\\ud800", "text": "one"}\n{"path": 0, "text": "zero"}\n',
        "nul.txt": b"one\0two",
        "text": b"k1 one",
        "wav.scp": b"r1 k1.wav",
        "segments": b"k1 r1 0 1",
    }
    for name, data in bad.items():
        (source / name).write_bytes(data)
    for name in ("u1", "u2", "u3", "u4", "h1", "h2", "nul", "0"):
        write_sound(source / f"{name}.wav")
    write_sound(source / "slow.flac", rate=10)
    for name in ("zeros", "slow"):
        (source / f"{name}.txt").write_text("text")
    assert run_import(source, target) == 0
    made = {"c0": "Number 0.", "c1": "Number 1.", "u2": "two, and", "u3": "three lines", "h2": "good", "0": "zero"}
    assert metadata(target) == made
    refused = {name: row["reason"] for name, row in table(target).items() if row["state"] == "refused"}
    files = {"zeros.flac", "slow.flac", "deep.json", "odd.json", "half.json", "half.srt", "latin.csv", "'a\\n.wav'"}
    rows = {"u1.wav", "u4.wav", "h1.wav", "nul.wav", "lines.jsonl:3", "lines.jsonl:4", "text"}
    assert refused.keys() == files | rows and all(0 < len(reason) < 200 for reason in refused.values())


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize(
    "name", ["wavs", "wavs/anna", "wavs/c0.wav", "metadata.csv", "wavs/c1.wav", "wavs/c1_0001.wav"]
)
def test_nothing_is_written_through_a_link_or_over_a_file_of_others(tmp_path: Path, name: str, again: bool):
    source, target, outside = make_source(tmp_path / "source", 1), tmp_path / "target", tmp_path / "outside"
    if again:
        assert run_import(source, target) == 0
        make_source(source, 2)
    path = target / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if "c1" in name:
        path.write_bytes(b"mine")
    else:
        path.rename(outside) if path.exists() else outside.mkdir()
        path.symlink_to(outside)
    before = contents(tmp_path)
    with pytest.raises(OptionError) as error:
        run_import(source, target)
    assert str(error.value).startswith(f"{target}") and "\n" not in str(error.value)
    assert contents(tmp_path) == before


def test_links_that_lead_upwards_or_in_circles_are_followed_once(tmp_path: Path):
    source = make_source(tmp_path / "all/source", 1)
    other = make_source(tmp_path / "other", 2)
    (other / "metadata.csv").unlink()
    (source / "sub/deep").mkdir(parents=True)
    write_sound(tmp_path / "all/outside.wav")
    links = {"up": "..", "sub/self": ".", "sub/top": "..", "sub/deep/far": "../../..", "again": "sub", "loop": "loop"}
    for name, there in (links | {"linked": str(other), "sub/twice": str(other), "root": "/"}).items():
        (source / name).symlink_to(there)
    (other / "back").symlink_to(source)
    write_sound(source / "sub/deep/d.wav")
    (source / "sub/deep/d.txt").write_text("Deep.")
    (source / "linked.csv").write_text("linked/c1|Linked.\n")
    assert run_import(source, tmp_path / "target") == 0
    assert metadata(tmp_path / "target") == {"c0": "Number 0.", "c1": "Linked.", "d": "Deep."}


def make_source(folder: Path, n_clips: int) -> Path:
    lines = []
    for number in range(n_clips):
        write_sound(folder / f"c{number}.wav", glide(1.0, low=100 + number))
        lines.append(f"c{number}|Number {number}.\n")
    (folder / "metadata.csv").write_text("".join(lines))
    return folder


def made(target: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in target.rglob("*.wav")}


def test_only_what_has_changed_is_made_again(tmp_path: Path, capsys):
    source, target = make_source(tmp_path / "source", 4), tmp_path / "target"
    assert run_import(source, target) == 0
    first = made(target)
    write_sound(source / "c1.wav", glide(1.2))
    (source / "metadata.csv").write_text("c0|Another text.\nc1|Number 1.\nc2|Number 2.\n")
    assert run_import(source, target) == 0
    second = made(target)
    assert {name for name in second if first[name] != second[name]} == {"c1.wav"} and "c3.wav" not in second
    assert metadata(target) == {"c0": "Another text.", "c1": "Number 1.", "c2": "Number 2."}
    assert "3, 0.00 h, 2 of them kept from an earlier run" in capsys.readouterr().out
    assert run_import(source, target, "--sampling-rate", "16000") == 0
    assert {soundfile.info(path).samplerate for path in target.rglob("*.wav")} == {16000}


def make_corpus(folder: Path, sounds: dict[str, np.ndarray | None], rate: int = 22050, **rates: int) -> Path:
    """A corpus of clips, each of a name with a suffix and samples, by default a voice-like sound."""
    (folder / "wavs").mkdir(parents=True)
    for name, wave in sounds.items():
        own = rates.get(Path(name).stem, rate)
        soundfile.write(folder / "wavs" / name, glide(1.0, rate=own) if wave is None else wave, own)
    (folder / "metadata.csv").write_text("".join(f"{Path(name).stem}|Some text.\n" for name in sounds))
    return folder


def make_lists(monkeypatch: pytest.MonkeyPatch, corpus: Path, *words: str) -> None:
    options = ["-d", corpus, "-o", corpus / "lists", "--name", "my", "--n-val", "1", "--n-test", "0", *words]
    monkeypatch.setattr(sys, "argv", ["make_filelists", *map(str, options)])
    assert make_filelists.main() == 0


VOICE = glide(1.0)
REFUSED = {
    "stereo": ({"a.wav": np.stack([VOICE, VOICE], axis=1)}, {"rate": 44100}, r"wavs/a\.wav: 2 channels, 44100 Hz"),
    "mp3": ({"a.wav": None, "b.mp3": None}, {}, r"wavs/b\.wav: no such file, but b\.mp3 is"),
    "mp3 alone": ({"a.mp3": None, "b.mp3": None}, {}, r"wavs: no recordings \(\.wav or \.flac\)"),
    "M4A as WAV": ({"a.wav": None, "b.wav": None}, {}, r"wavs/b\.wav: a format that training does not read"),
    "two rates": (
        {"a.wav": None, "b.wav": None, "c.wav": None},
        {"b": 16000},
        r"my voice: sampling rates differ, 2 of 22050 Hz \(wavs/a\.wav\) and 1 of 16000 Hz \(wavs/b\.wav\)",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_trained_on_is_refused_before_lists_are_written(case: str, tmp_path: Path, monkeypatch):
    sounds, rates, message = REFUSED[case]
    monkeypatch.chdir(tmp_path)
    corpus = make_corpus(Path("my voice"), sounds, **rates)
    if case == "M4A as WAV":
        encode_aac(corpus / "wavs/b.wav", np.stack([VOICE, VOICE], axis=1), 22050, "mp4")
    command = "; run bash scripts/import_recordings.sh 'my voice' 'my voice_22050'"
    with pytest.raises(InputError, match=f"{message}{command}$") as raised:
        make_lists(monkeypatch, corpus)
    assert len(str(raised.value)) < 160 and not (corpus / "lists").exists()
    words = ["describe_mels", "-d", str(corpus), "-o", str(corpus / "audio.json")]
    monkeypatch.setattr(sys, "argv", words)
    if case != "mp3":
        with pytest.raises(InputError, match=command):
            describe_mels.main()
    assert import_recordings(["my voice", "my voice_22050", "--num-workers", "1"]) == 0
    make_lists(monkeypatch, Path("my voice_22050")) if len(sounds) > 1 else None
