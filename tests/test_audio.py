"""Recordings of every usable format are read alike; every unusable one is one clear line."""

import io
import re
import struct
from pathlib import Path

import av
import numpy as np
import pytest
import soundfile
import torch
from golden_files import recordings

from common.audio.decoding import decode
from common.audio.wav import check_sound_format, check_wav, load_wav, save_wav
from common.errors import AudioError

RATE = 22050


@pytest.fixture(scope="module")
def tone() -> np.ndarray:
    """A quarter of a second, exactly representable in 16 bits."""
    t = np.arange(RATE // 4) / RATE
    return np.round(0.5 * np.sin(2 * np.pi * 220 * t) * 32768) / 32768


@pytest.mark.parametrize(
    ("suffix", "subtype"),
    [
        ("wav", "PCM_16"),
        ("wav", "PCM_24"),
        ("wav", "PCM_32"),
        ("wav", "FLOAT"),
        ("wav", "DOUBLE"),
        ("flac", "PCM_16"),
        ("flac", "PCM_24"),
    ],
)
def test_the_same_sound_is_read_from_every_format(tmp_path: Path, tone: np.ndarray, suffix: str, subtype: str):
    path = tmp_path / f"a.{suffix}"
    soundfile.write(path, tone, RATE, subtype=subtype)
    wave = load_wav(path, sampling_rate=RATE)
    assert wave.dtype == torch.float32 and wave.shape == tone.shape
    assert torch.equal(wave, torch.from_numpy(tone).float())
    assert check_wav(path, sampling_rate=RATE).n_samples == len(tone)


def test_real_clips_are_their_integers_over_32768():
    for path in recordings("audio/clips/*.flac"):
        integers, _ = soundfile.read(path, dtype="int16")
        assert np.array_equal(load_wav(path, sampling_rate=RATE).numpy(), integers / np.float32(32768))


def write_bad_file(path: Path, tone: np.ndarray, fault: str) -> None:
    if fault == "missing":
        return
    if fault == "empty":
        path.write_bytes(b"")
    elif fault == "text":
        path.write_text("these are no samples, only words about samples")
    elif fault == "no samples":
        soundfile.write(path, tone[:0], RATE)
    elif fault == "rate":
        soundfile.write(path, tone, 44100)
    elif fault == "stereo":
        soundfile.write(path, np.stack([tone, tone], axis=1), RATE)
    elif fault == "a-law":
        soundfile.write(path, tone, RATE, subtype="ALAW")
    elif fault in ("nan", "inf", "loud"):
        samples = tone.copy()
        samples[100] = {"nan": np.nan, "inf": -np.inf, "loud": 1.5}[fault]
        soundfile.write(path, samples, RATE, subtype="FLOAT")


@pytest.mark.parametrize(
    ("fault", "message", "in_header"),
    [
        ("missing", "no such file", True),
        ("empty", "not a readable WAV or FLAC file", True),
        ("text", "not a readable WAV or FLAC file", True),
        ("no samples", "no samples", True),
        ("rate", r"44100 Hz, expected 22050; resample it or pass --sampling-rate \(list\.txt:7\)", True),
        ("stereo", r"2 channels, expected 1; mix it down to mono \(list\.txt:7\)", True),
        ("a-law", "ALAW samples, expected WAV or FLAC with integer or float samples", True),
        ("nan", "samples from .* to .*, expected within", False),
        ("inf", "samples from .* to .*, expected within", False),
        ("loud", r"samples from -0\.5\S* to 1\.5, expected within \[-1, 1\]", False),
    ],
)
def test_an_unusable_file_is_one_clear_line(
    tmp_path: Path, tone: np.ndarray, fault: str, message: str, in_header: bool
):
    path = tmp_path / "a.wav"
    write_bad_file(path, tone, fault)
    for function in (load_wav, check_wav) if in_header else (load_wav,):
        with pytest.raises(AudioError, match=message) as caught:
            function(path, sampling_rate=RATE, where="list.txt:7")
        text = str(caught.value)
        assert text.startswith(f"{path}: ") and "(list.txt:7)" in text and "\n" not in text


@pytest.mark.parametrize("suffix", ["wav", "flac"])
def test_a_file_cut_anywhere_is_refused(tmp_path: Path, tone: np.ndarray, suffix: str):
    path = tmp_path / f"a.{suffix}"
    soundfile.write(path, tone, RATE)
    data = path.read_bytes()
    for size in [1, 20, 43, 44, 45, *range(60, len(data), len(data) // 50), len(data) - 1]:
        path.write_bytes(data[:size])
        for function in (check_wav, load_wav) if suffix == "wav" else (load_wav,):
            with pytest.raises(AudioError, match=re.escape(str(path))):
                function(path, sampling_rate=RATE)


def riff(chunks: list[tuple[bytes, bytes]], announced: int | None = None) -> bytes:
    body = b""
    for name, content in chunks:
        size = announced if name == b"data" and announced is not None else len(content)
        body += name + struct.pack("<I", size) + content + b"\0" * (len(content) % 2)
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WAVE" + body


FMT = (b"fmt ", struct.pack("<HHIIHH", 1, 1, RATE, RATE * 2, 2, 16))


def test_a_wav_that_was_written_to_a_pipe_ends_where_it_ends(tmp_path: Path):
    path = tmp_path / "a.wav"
    samples = np.arange(100, dtype=np.int16)
    path.write_bytes(riff([FMT, (b"data", samples.tobytes())], announced=0xFFFFFFFF))
    assert torch.equal(load_wav(path, sampling_rate=RATE) * 32768, torch.arange(100.0))


def test_a_wav_of_more_than_4_gigabytes_announces_its_length_elsewhere(tmp_path: Path, tone: np.ndarray):
    path = tmp_path / "a.wav"
    soundfile.write(path, tone, RATE, format="RF64")
    assert len(load_wav(path, sampling_rate=RATE)) == len(tone)
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(AudioError, match="truncated"):
        check_wav(path, sampling_rate=RATE)


def test_a_loud_wave_clips_and_never_wraps(tmp_path: Path):
    save_wav(tmp_path / "a.wav", torch.tensor([-7.0, -1.0, 0.0, 1.0, 1.00001, 7.0]), sampling_rate=RATE)
    integers, _ = soundfile.read(tmp_path / "a.wav", dtype="int16")
    assert integers.tolist() == [-32768, -32768, 0, 32767, 32767, 32767]


@pytest.mark.parametrize(
    ("name", "kind", "tolerance"),
    [
        ("a.WAV", ("WAV", "PCM_16"), 1e-4),
        ("a.flac", ("FLAC", "PCM_16"), 1e-4),
        ("a.ogg", ("OGG", "VORBIS"), 0.03),
        ("a.mp3", ("MP3", "MPEG_LAYER_III"), 0.03),
    ],
)
def test_the_suffix_decides_how_sound_is_written(tmp_path: Path, name: str, kind: tuple[str, str], tolerance: float):
    wave = 0.5 * torch.sin(torch.arange(70000) / 10)
    save_wav(tmp_path / name, wave, sampling_rate=22050)
    info = soundfile.info(tmp_path / name)
    assert (info.format, info.subtype, info.samplerate, info.channels) == (*kind, 22050, 1)
    again, _ = soundfile.read(tmp_path / name, dtype="float32")
    assert len(again) == len(wave) and (torch.from_numpy(again) - wave).abs().max() < tolerance
    save_wav(tmp_path / name, wave[:1], sampling_rate=22050)  # as short as can be
    assert soundfile.info(tmp_path / name).format == kind[0]


@pytest.mark.parametrize(
    ("name", "rate", "decoded"),
    [("a.opus", 22050, 48000), ("a.m4a", 22050, 22050), ("a.mp3", 11000, 11025), ("a.mp3", 8000, 8000)],
)
def test_sound_is_resampled_where_a_format_does_not_hold_its_rate(tmp_path: Path, name: str, rate: int, decoded: int):
    wave = 0.5 * torch.sin(torch.arange(2 * rate) * 2 * torch.pi * 440 / rate)
    save_wav(tmp_path / name, wave, sampling_rate=rate)
    with av.open(tmp_path / name) as file:
        frames = list(file.decode(audio=0))
    samples = np.concatenate([frame.to_ndarray()[0] for frame in frames])
    assert frames[0].sample_rate == decoded and len(samples) / decoded == pytest.approx(2.0, abs=0.1)
    second = samples[decoded // 2 :][:decoded]
    assert np.abs(np.fft.rfft(second)).argmax() == pytest.approx(440, abs=1)


def test_a_format_that_cannot_be_written_is_refused_before_there_is_sound():
    with pytest.raises(AudioError, match=r"a.wma: expected a name that ends in .*\.opus or \.m4a \(list:3\)"):
        check_sound_format(Path("a.wma"), where="list:3")


def test_a_wave_that_cannot_be_saved_is_refused(tmp_path: Path):
    with pytest.raises(AudioError, match="not finite"):
        save_wav(tmp_path / "a.wav", torch.tensor([0.0, float("nan")]), sampling_rate=RATE)
    assert not (tmp_path / "a.wav").exists()


def sound(tone: np.ndarray, form: str, *, rate: int = RATE, channels: int = 1, subtype: str | None = None) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, np.stack([tone] * channels, axis=1), rate, format=form, subtype=subtype)
    return file.getvalue()


TONE = np.sin(np.arange(4000) * 0.2) / 2
STRANGERS = {  # what a file is -> what it says, and what its refusal names
    "ffconcat": (b"ffconcat version 1.0\nfile 'inner.wav'\n", "not a sound file"),
    "sdp": (b"v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nm=audio 5004 RTP/AVP 0\n", "not a sound file"),
    "m3u8": (b"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\ninner.wav\n#EXT-X-ENDLIST\n", "not a sound file"),
    "a name that is an address": (b"http://127.0.0.1:9/a.wav", "not a sound file"),
    "zeros": (bytes(20000), "not a sound file"),
    "a container of instruments": (sound(TONE, "XI", subtype="DPCM_16"), "XI with DPCM_16"),
    "a codec of modems": (sound(TONE, "AU", subtype="G721_32"), "AU with G721_32"),
    "a rate of 10 Hz": (sound(TONE, "FLAC", rate=10), "10 Hz"),
    "a rate of 2 GHz": (sound(TONE, "WAV", rate=2_000_000_000), "2000000000 Hz"),
    "64 channels": (sound(TONE, "WAV", channels=64), "64 channels"),
    "hours": (sound(TONE, "FLAC"), "longer than"),
}


@pytest.mark.parametrize("kind", STRANGERS)
@pytest.mark.parametrize("suffix", ["flac", "m4a", "raw"])
def test_a_file_that_opens_others_or_takes_all_memory_is_refused(tmp_path: Path, monkeypatch, kind: str, suffix: str):
    data, words = STRANGERS[kind]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("common.audio.decoding.LONGEST", 12 if kind != "hours" else 0.1 / 3600)
    Path("inner.wav").write_bytes(sound(TONE, "WAV"))
    path = Path(f"a.{suffix}")
    path.write_bytes(data)
    for source in (path, data):
        with pytest.raises(AudioError, match=None if suffix == "raw" else words) as caught:
            list(decode(source, sampling_rate=RATE, name="it").blocks)
        assert str(caught.value).startswith("it: ") and "\n" not in str(caught.value)
