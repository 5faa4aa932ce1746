"""HiFi-GAN's data: the published mels and items, segments that repeat, and mels that belong to their recordings."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import soundfile
import torch
from golden_files import audio_config, read_case
from tiny_vocoder import ALIGNED, DEFAULTS
from torch import Tensor

from common.audio.mel import MelExtractor
from common.config import AudioConfig, to_plain
from common.data.recordings import input_mel_extractor
from common.errors import InputError
from hifigan.data_function import SILENCE, HifiganDataset

RAW = replace(ALIGNED, peak=None)
CENTERED = AudioConfig()


class Golden(NamedTuple):
    """The published items, and how they were made."""

    clips: list[str]  # their files in order
    rules: dict
    tensors: dict[str, Tensor]
    audio: AudioConfig
    full_band: MelExtractor

    @property
    def segment_size(self) -> int:
        return self.rules["segment_size"]


@pytest.fixture
def golden(goldens: Path, tmp_path: Path) -> Golden:
    """The published items; their recordings are in the folder ``audio``."""
    (tmp_path / "audio").symlink_to(goldens / "hifigan" / "audio")
    about, tensors = read_case(goldens / "hifigan", "mel_spectrogram")
    audio = audio_config(about["parameters"], framing="aligned", peak=0.95)
    full_band = MelExtractor(replace(audio, peak=None, mel_fmax=about["parameters"]["fmax_loss"]))
    clips = [f"audio/{clip}.flac" for clip in about["clip_order"]]
    return Golden(clips, about["dataset"], tensors, audio, full_band)


def assert_same_mel(mel: Tensor, expected: Tensor) -> None:
    """As near as float32 comes to the original: quiet bins differ most, since their logarithm does."""
    assert mel.shape == expected.shape
    error = (mel - expected).abs()
    assert error.max() < 5e-3
    assert error.mean() < 1e-5


def dataset(folder: Path, lines: list[str], *, audio: AudioConfig = ALIGNED, **others) -> HifiganDataset:
    filelist = folder / "list.txt"
    filelist.write_text("".join(f"{line}\n" for line in lines))
    options = replace(DEFAULTS, dataset_path=folder, **{"segment_size": 2048, "seed": 1} | others)
    return HifiganDataset(options, filelist, audio=audio)


def test_items_equal_the_originals(golden: Golden, tmp_path: Path):
    data = dataset(tmp_path, golden.clips, audio=golden.audio, segment_size=golden.segment_size)
    extract = input_mel_extractor(golden.audio)
    items = [item for item in golden.rules["items"] if f"dataset.{item['index']}_mel" in golden.tensors]
    assert items
    for item in items:
        start, index = item["audio_start"], item["index"]
        clip = golden.clips.index(f"audio/{item['clip']}.flac")
        segment = data[clip].audio[0, start : start + golden.segment_size]  # scaled as the whole recording
        assert_same_mel(extract(segment[None])[0], golden.tensors[f"dataset.{index}_mel"])
        assert_same_mel(golden.full_band(segment[None])[0], golden.tensors[f"dataset.{index}_mel_loss"])


def test_a_short_item_equals_the_originals(golden: Golden, tmp_path: Path):
    n_samples = int(re.search(r"first (\d+) samples of the first clip", golden.rules["stored"])[1])
    samples, rate = soundfile.read(tmp_path / golden.clips[0], dtype="int16")
    soundfile.write(tmp_path / "short.wav", samples[:n_samples], rate)
    data = dataset(tmp_path, ["short.wav"], audio=golden.audio, segment_size=golden.segment_size)
    segment = data.draw(0, epoch=1).audio[0]
    assert segment.shape == (golden.segment_size,) and not segment[n_samples:].any()
    assert_same_mel(input_mel_extractor(golden.audio)(segment[None])[0], golden.tensors["dataset.short_mel"])
    assert_same_mel(golden.full_band(segment[None])[0], golden.tensors["dataset.short_mel_loss"])


def test_an_item_of_fine_tuning_equals_the_originals(golden: Golden, tmp_path: Path):
    """As recorded, from where the mel's frames were taken."""
    name, raw = Path(golden.clips[-1]).stem, replace(golden.audio, peak=None)
    (tmp_path / "mels").mkdir()
    (stored,) = (mel + 0.01 for key, mel in golden.tensors.items() if key.startswith(f"output.{name}_raw_"))
    torch.save(stored, tmp_path / "mels" / f"{name}.pt")
    options = {"segment_size": golden.segment_size, "input_mels_dir": tmp_path / "mels"}
    data = dataset(tmp_path, [golden.clips[-1]], audio=raw, **options)
    first, n_frames = golden.rules["finetune_mel_start"], golden.segment_size // raw.hop_length
    for epoch in range(1, 4000):
        item = data.draw(0, epoch=epoch)
        if torch.equal(item.mels[0], stored[:, first : first + n_frames]):
            break
    else:
        pytest.fail("the golden's place was never drawn")
    assert_same_mel(golden.full_band(item.audio)[0], golden.tensors["dataset.finetune_mel_loss"])


def write_ramp(path: Path, n_samples: int, *, top: int | None = None) -> np.ndarray:
    """A recording whose samples say where they stand; the last one is the largest."""
    samples = np.arange(1, n_samples + 1, dtype=np.int16)
    if top is not None:
        samples[-1] = top
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, samples, 22050)
    return samples


def first_sample(segment: Tensor) -> int:
    """Where in a ramp as recorded a segment begins."""
    return round(segment[0].item() * 32768) - 1


def test_segments_begin_anywhere_the_last_place_included(tmp_path: Path):
    write_ramp(tmp_path / "a.wav", 2053)
    data = dataset(tmp_path, ["a.wav"], audio=RAW)
    starts = [first_sample(data.draw(0, epoch=epoch).audio[0]) for epoch in range(1, 101)]
    assert set(starts) == set(range(6))  # 0 and 2053 - 2048 both count


def test_a_segment_is_scaled_as_the_complete_recording(tmp_path: Path):
    samples = write_ramp(tmp_path / "a.wav", 9001, top=20000)
    data = dataset(tmp_path, ["a.wav"])
    scaled = torch.from_numpy(samples / 20000 * 0.95).float()
    for epoch in (1, 2, 3):  # the first reads the peak, the others know it
        segment = data.draw(0, epoch=epoch).audio[0]
        start = round(segment[0].item() / 0.95 * 20000) - 1
        torch.testing.assert_close(segment, scaled[start : start + 2048], atol=1e-6, rtol=0)
    torch.testing.assert_close(data[0].audio[0], scaled[: 9001 // 256 * 256], atol=1e-6, rtol=0)


def counted_mels(folder: Path, name: str, n_frames: int, *, audio: AudioConfig = RAW) -> Tensor:
    """A stored mel whose values say which frame they are of."""
    mel = torch.arange(n_frames, dtype=torch.float32).expand(80, -1).contiguous()
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(mel, folder / f"{name}.pt")
    (folder / "audio.json").write_text(json.dumps(to_plain(audio)))
    return mel


@pytest.mark.parametrize("audio", [RAW, CENTERED])
def test_mels_from_the_disk_are_cut_where_their_samples_are(audio: AudioConfig, tmp_path: Path):
    """A centered mel has a frame more than the recording has whole hops; it is never asked for samples."""
    write_ramp(tmp_path / "wavs" / "a.wav", 5000)  # 19 hops and a bit
    counted_mels(tmp_path / "mels", "a", 19 + (audio is CENTERED), audio=audio)
    data = dataset(tmp_path, ["wavs/a.wav"], audio=audio, input_mels_dir=tmp_path / "mels")
    firsts = set()
    for epoch in range(1, 100):
        item = data.draw(0, epoch=epoch)
        assert item.mels.shape == (1, 80, 8)
        frames = item.mels[0, 0].tolist()
        assert frames == [frames[0] + offset for offset in range(8)]
        assert first_sample(item.audio[0]) == 256 * frames[0]
        firsts.add(int(frames[0]))
    assert firsts == set(range(12))  # 0 and 19 - 8 both count
    whole = data[0]
    assert whole.mels[0, 0].tolist() == list(range(19)) and whole.audio.size(1) == 19 * 256


def test_a_recording_shorter_than_a_segment_is_followed_by_silence(tmp_path: Path):
    samples = write_ramp(tmp_path / "wavs" / "a.wav", 1000)
    stored = counted_mels(tmp_path / "mels", "a", 3)
    item = dataset(tmp_path, ["wavs/a.wav"], audio=RAW, input_mels_dir=tmp_path / "mels").draw(0, epoch=1)
    assert torch.equal(item.audio[0, :1000], torch.from_numpy(samples / 32768).float())
    assert not item.audio[0, 1000:].any()
    assert torch.equal(item.mels[0, :, :3], stored)
    assert item.mels.shape == (1, 80, 8)
    assert (item.mels[0, :, 3:] == SILENCE).all()
    assert pytest.approx(MelExtractor(CENTERED)(torch.zeros(1, 4096)).max().item()) == SILENCE


@pytest.fixture
def with_mels(tmp_path: Path) -> Path:
    write_ramp(tmp_path / "wavs" / "a.wav", 5000)
    counted_mels(tmp_path / "mels", "a", 19)
    return tmp_path


def open_mels(folder: Path, audio: AudioConfig = RAW) -> HifiganDataset:
    return dataset(folder, ["wavs/a.wav"], audio=audio, input_mels_dir=folder / "mels")


@pytest.mark.parametrize("n_frames", [18, 20])
def test_frames_that_do_not_belong_to_the_samples_are_refused(n_frames: int, with_mels: Path):
    counted_mels(with_mels / "mels", "a", n_frames)
    data = open_mels(with_mels)
    for read in (lambda: data[0], lambda: data.draw(0, epoch=1)):
        with pytest.raises(
            InputError, match=rf"mels/a\.pt: shape \(80, {n_frames}\), expected \(80, 19\) .*list\.txt:1"
        ):
            read()


def test_mels_that_are_missing_or_made_with_other_settings_are_named(with_mels: Path):
    counted_mels(with_mels / "mels", "a", 19, audio=replace(RAW, mel_fmax=7600.0, hop_length=200))
    with pytest.raises(InputError, match=r"mel_fmax: 7600\.0 \(the mels\), 8000\.0 .*") as caught:
        open_mels(with_mels)
    assert "hop_length: 200 (the mels), 256 (the options)" in str(caught.value)
    (with_mels / "mels" / "audio.json").unlink()
    assert open_mels(with_mels)[0].mels.shape == (1, 80, 19)  # the original's tools leave no description
    (with_mels / "mels" / "a.pt").unlink()
    with pytest.raises(InputError, match=r"mels/a\.pt: no such file, for wavs/a\.wav .*list\.txt:1.*extract"):
        open_mels(with_mels)


@pytest.mark.parametrize(("audio", "least"), [(ALIGNED, 512), (CENTERED, 768)])
def test_a_recording_too_short_to_validate_on_is_named(audio: AudioConfig, least: int, tmp_path: Path):
    """Too short is what has no mel after it is cut to whole hops."""
    for n_samples in (200, least - 1):
        write_ramp(tmp_path / "a.wav", n_samples)
        data = dataset(tmp_path, ["a.wav"], audio=audio)
        with pytest.raises(InputError, match=rf"a\.wav: {n_samples} samples, too short .* least {least} .*list\.txt:1"):
            data[0]
        segment = data.draw(0, epoch=1).audio[0]  # in training silence follows it
        assert segment[n_samples - 1] > 0 and not segment[n_samples:].any()
    write_ramp(tmp_path / "a.wav", least)
    shortest = dataset(tmp_path, ["a.wav"], audio=audio)
    batch = shortest.collate([shortest[0]])
    assert input_mel_extractor(audio)(batch.audio, batch.audio_lengths).isfinite().all()
