"""FastPitch's data without durations: recordings or their features, transcripts, speakers, and the voice's pitch."""

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import soundfile
import torch
from corpus import glide
from tiny import padded_priors
from tiny_voice import SMALL as TINY

from common.audio.mel import MelExtractor
from common.audio.pitch import estimate_pitch, statistics
from common.config import AudioConfig
from common.distributed import Ranks
from common.errors import InputError
from common.files import write_text
from common.text.config import TextConfig
from common.torch_file import save_tensor
from fastpitch.arg_parser import TrainingOptions
from fastpitch.data_function import FastPitchDataset, build_dataset
from fastpitch.fine_tuning import set_up_networks
from fastpitch.model import FastPitch

RATE = 22050
TEXT = TextConfig()
TEXTS = {"a": "Printing", "b": "in the only", "c": "a word"}  # plain letters: one symbol each
SECONDS = {"a": 0.6, "b": 0.8, "c": 0.5}
SPEAKERS = {"a": "anna", "b": "carl", "c": "anna"}
HERTZ = {"a": (180, 260), "b": (90, 130), "c": (200, 240)}  # anna speaks higher than carl


def wave_of(name: str) -> torch.Tensor:
    low, high = HERTZ[name]
    return torch.from_numpy(glide(SECONDS[name], low=low, high=high)).float()


def write_recordings(folder: Path, *, speakers: bool = False) -> Path:
    """Recordings of three utterances, and ``list.txt``."""
    (folder / "wavs").mkdir(parents=True)
    lines = []
    for name, text in TEXTS.items():
        soundfile.write(folder / "wavs" / f"{name}.wav", wave_of(name).numpy(), RATE, subtype="FLOAT")
        lines.append(f"wavs/{name}.wav|{text}" + (f"|{SPEAKERS[name]}" if speakers else ""))
    write_text(folder / "list.txt", "\n".join(lines) + "\n")
    return folder


def measured(
    folder: Path, *, filelist: str = "list.txt", text: TextConfig = TEXT, **changes: Any
) -> tuple[FastPitchDataset, FastPitch]:
    """A dataset, and a network with its pitch statistics."""
    n = max(1, len(text.speakers))
    config = replace(TINY, n_speakers=n, learned_alignment=True, pitch_statistics_per_speaker=n > 1)
    options = TrainingOptions(architecture=config, dataset_path=folder, seed=7, **changes)
    data = build_dataset(options, folder / filelist, audio=AudioConfig(), text=text, training=False)
    voice = FastPitch(config)
    sets = {"training_set": data, "validation_set": data}
    set_up_networks({"fastpitch": voice}, options, text=text, **sets, gather=Ranks().gather_over)
    return data, voice


def pitch_of(name: str, n_frames: int) -> torch.Tensor:
    return torch.from_numpy(estimate_pitch(wave_of(name).numpy(), AudioConfig(), n_frames=n_frames)).float()


def refused(folder: Path, **changes) -> str:
    with pytest.raises(InputError) as caught:
        measured(folder, **changes)[0][0]
    return str(caught.value).replace(f"{folder}/", "")


def test_a_batch_of_recordings_holds_their_mels_their_normalized_pitch_and_the_prior(tmp_path: Path):
    data, voice = measured(write_recordings(tmp_path))
    batch = data.collate([data[1], data[0], data[2]])
    assert batch.durations is batch.pitch is batch.speakers is None
    assert batch.names[1] == f"wavs/a.wav ({tmp_path}/list.txt:1)"
    everything = [pitch_of(name, n).double().numpy() for name, n in zip("abc", data.lengths)]
    wanted = statistics(everything)
    assert voice.pitch_mean.item() == pytest.approx(wanted.mean)
    assert voice.pitch_std.item() == pytest.approx(wanted.std)
    for row, name in enumerate("bac"):
        mel = MelExtractor(AudioConfig())(wave_of(name)[None])[0]
        n_frames = mel.size(1)
        assert batch.mel_lengths[row] == n_frames == data.lengths["abc".index(name)]
        assert torch.equal(batch.mels[row, :, :n_frames], mel)
        hertz = pitch_of(name, n_frames)
        normalized = torch.where(hertz > 0, (hertz - wanted.mean) / wanted.std, 0.0)
        assert torch.allclose(batch.pitch_frames[row, :n_frames], normalized, atol=1e-5)
        assert not batch.pitch_frames[row, n_frames:].any()
        assert 0 < (hertz > 0).sum() < n_frames
        assert not batch.pitch_frames[row, :n_frames][hertz == 0].any()
    assert torch.equal(batch.prior, padded_priors(batch.mel_lengths.tolist(), batch.token_lengths.tolist()))


def test_features_on_the_disk_give_the_batch_that_their_recordings_give(tmp_path: Path):
    data, _ = measured(write_recordings(tmp_path))
    lines = []
    for index, name in enumerate(TEXTS):
        mel, pitch = data.mel_and_pitch(index)
        save_tensor(tmp_path / f"mels/{name}.pt", mel)
        save_tensor(tmp_path / f"pitch/{name}.pt", pitch[None] if name == "b" else pitch)
        lines.append(f"mels/{name}.pt|pitch/{name}.pt|{TEXTS[name]}\n")
    write_text(tmp_path / "stored.txt", "".join(lines))
    write_text(tmp_path / "pitch.txt", "".join(re.sub(r"mels/(.)\.pt", r"wavs/\1.wav", line) for line in lines))
    shutil.rmtree(tmp_path / "pitch_cache")
    ours = data.collate([data[0], data[1]])
    shutil.rmtree(tmp_path / "pitch_cache")
    for filelist in ("stored.txt", "pitch.txt"):
        stored, _ = measured(tmp_path, filelist=filelist, load_pitch_from_disk=True)
        theirs = stored.collate([stored[0], stored[1]])
        for name, value in vars(ours).items():
            if isinstance(value, torch.Tensor):
                assert torch.equal(value, getattr(theirs, name)), (filelist, name)
    assert not (tmp_path / "pitch_cache").exists(), "no pitch is estimated"
    expected = "list.txt:1: --load-pitch-from-disk expects wav|pitch|text"
    assert expected in refused(tmp_path, load_pitch_from_disk=True)
    save_tensor(tmp_path / "pitch/a.pt", torch.ones(7))
    assert "pitch/a.pt: shape (7,), expected (52,), the frames of wavs/a.wav (pitch.txt:1)" in refused(
        tmp_path, filelist="pitch.txt"
    )


def test_each_speaker_has_statistics_of_its_own(tmp_path: Path):
    write_recordings(tmp_path, speakers=True)
    text = TextConfig(speakers=("anna", "carl", "nobody"))
    data, voice = measured(tmp_path, text=text)
    assert data.speakers == [0, 1, 0]
    assert data.collate([data[2], data[1]]).speakers.tolist() == [0, 1]
    parts = [pitch_of(name, n).double().numpy() for name, n in zip("abc", data.lengths)]
    wanted = [statistics([parts[0], parts[2]]), statistics([parts[1]]), statistics(parts)]
    assert voice.pitch_mean.tolist() == pytest.approx([one.mean for one in wanted])
    assert voice.pitch_std.tolist() == pytest.approx([one.std for one in wanted])
    assert voice.pitch_mean[0] > voice.pitch_mean[1] + 50
    voiced = data[1].pitch_frames[data[1].pitch_frames != 0]
    assert voiced.mean().abs() < 1e-4
    assert voiced.std(correction=0) == pytest.approx(1, abs=1e-3)


def _edit(folder: Path, line: str, *, name: str = "list.txt") -> None:
    lines = (folder / name).read_text().splitlines()
    write_text(folder / name, "\n".join([line, *lines[1:]]) + "\n")


def test_bad_lines_and_recordings_are_one_clear_line(tmp_path: Path):
    write_recordings(tmp_path)
    _edit(tmp_path, "wavs/a.wav|" + "long " * 30)
    assert refused(tmp_path).startswith("wavs/a.wav (list.txt:1): 52 frames for 149 symbols; correct")
    _edit(tmp_path, "wavs/a.wav|")
    assert refused(tmp_path) == "list.txt:1: the text column is empty; expected wav|text[|speaker]"
    _edit(tmp_path, "wavs/a.wav| . ")
    soundfile.write(tmp_path / "wavs" / "a.wav", wave_of("a").numpy()[:400], RATE)
    assert refused(tmp_path) == "wavs/a.wav: 400 samples, a mel needs at least 513 (list.txt:1)"


def test_a_speaker_without_pitch_gets_that_of_all(tmp_path: Path):
    write_recordings(tmp_path, speakers=True)
    soundfile.write(tmp_path / "wavs" / "b.wav", torch.zeros(20000).numpy(), RATE)
    _, voice = measured(tmp_path, text=TextConfig(speakers=("anna", "carl")))
    assert voice.pitch_mean[1].item() == pytest.approx(voice.pitch_mean[0].item(), rel=1e-6)
