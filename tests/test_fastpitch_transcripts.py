"""FastPitch's data without durations: recordings or their features, transcripts, speakers, and the voice's pitch."""

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
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
from common.config import AudioConfig, to_plain
from common.distributed import Ranks
from common.errors import InputError
from common.files import write_json, write_text
from common.text.config import TextConfig
from common.text.teacher import text_of_teacher
from common.torch_file import save_tensor
from fastpitch.arg_parser import LossScales, TrainingOptions
from fastpitch.data_function import FastPitchDataset, build_dataset, teacher_forced_dataset
from fastpitch.fine_tuning import compute_statistics
from fastpitch.model import FastPitch

RATE = 22050
ALONE = Ranks().gather_over
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


def options(folder: Path, *, n_speakers: int = 1, learned_alignment: bool = True, **changes: Any) -> TrainingOptions:
    values = {
        "architecture": replace(TINY, n_speakers=n_speakers, learned_alignment=learned_alignment),
        "losses": LossScales(),
        "dataset_path": folder,
        "training_files": [folder / "list.txt"],
        "seed": 7,
        "num_workers": 0,
        "pitch_method": "praat",
        "pitch_cache": None,
        "pitch_mean_std_file": None,
    }
    return TrainingOptions(**values | changes)


def dataset(folder: Path, *, filelist: str = "list.txt", text: TextConfig = TEXT, **changes: Any) -> FastPitchDataset:
    chosen = options(folder, n_speakers=max(1, len(text.speakers)), **changes)
    return build_dataset(chosen, folder / filelist, audio=AudioConfig(), text=text, training=False)


def network(n: int = 1) -> FastPitch:
    return FastPitch(replace(TINY, n_speakers=n, pitch_statistics_per_speaker=n > 1))


def measure(data: FastPitchDataset, voice: FastPitch, folder: Path, *, gather: Any = ALONE, **changes: Any) -> None:
    chosen = options(folder, **changes)
    compute_statistics({"fastpitch": voice}, chosen, training_set=data, validation_set=data, gather=gather)


def measured(folder: Path, *, n: int = 1, **changes: Any) -> tuple[FastPitchDataset, FastPitch]:
    data, voice = dataset(folder, **changes), network(n)
    measure(data, voice, folder)
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
    assert batch.durations is None
    assert batch.pitch is None
    assert batch.speakers is None
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


def test_pitch_is_kept_in_the_dataset_or_where_the_option_says(tmp_path: Path):
    write_recordings(tmp_path / "a")
    measured(tmp_path / "a")
    assert len(list((tmp_path / "a" / "pitch_cache").rglob("*.pt"))) == 3
    data = dataset(tmp_path / "a", pitch_cache=tmp_path / "other", pitch_method="pyin")
    data.mel_and_pitch(0)
    assert len(list((tmp_path / "other").glob("pyin-*/*/*.pt"))) == 1
    assert len(list((tmp_path / "a" / "pitch_cache").rglob("*.pt"))) == 3


def test_each_speaker_has_statistics_of_its_own(tmp_path: Path):
    write_recordings(tmp_path, speakers=True)
    text = TextConfig(speakers=("anna", "carl", "nobody"))
    data, voice = measured(tmp_path, n=3, text=text)
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


def test_a_voice_that_knows_its_pitch_is_not_measured_again(tmp_path: Path):
    write_recordings(tmp_path)
    data, voice = dataset(tmp_path), network()
    voice.pitch_mean.fill_(100.0)
    voice.pitch_std.fill_(20.0)
    measure(data, voice, tmp_path)
    assert (voice.pitch_mean, voice.pitch_std) == (torch.tensor([100.0]), torch.tensor([20.0]))
    assert not (tmp_path / "pitch_cache").exists()
    hertz = pitch_of("a", data.lengths[0])
    assert torch.allclose(data[0].pitch_frames[0], torch.where(hertz > 0, (hertz - 100) / 20, 0.0))


def test_statistics_do_not_depend_on_how_the_list_is_shared(tmp_path: Path):
    write_recordings(tmp_path)
    _, alone = measured(tmp_path)
    asked = []

    def gather(n_items: int, compute: Callable[[Sequence[int]], Iterator[Any]], description: str) -> list[Any]:
        """As two processes' ``Ranks.gather_over``."""
        shares = [list(compute(range(n_items)[rank::2])) for rank in range(2)]
        asked.append((n_items, description, [len(share) for share in shares]))
        return [shares[index % 2][index // 2] for index in range(n_items)]

    data, voice = dataset(tmp_path), network()
    measure(data, voice, tmp_path, gather=gather)
    assert asked == [(3, "measuring pitch", [2, 1])]
    assert torch.equal(alone.pitch_mean, voice.pitch_mean)
    assert torch.equal(alone.pitch_std, voice.pitch_std)


def test_teacher_forcing_reads_lists_with_and_without_durations(tmp_path: Path):
    write_recordings(tmp_path)
    data, voice = measured(tmp_path)
    config = replace(TINY, learned_alignment=True)
    lines = []
    for index, (name, text) in enumerate(TEXTS.items()):
        mel, _ = data.mel_and_pitch(index)
        durations = torch.full((len(text),), mel.size(1) // len(text))
        durations[0] += mel.size(1) - durations.sum()
        save_tensor(tmp_path / f"mels/{name}.pt", mel)
        save_tensor(tmp_path / f"durations/{name}.pt", durations)
        save_tensor(tmp_path / f"pitch_char/{name}.pt", torch.full((len(text),), 0.5))
        lines.append(f"mels/{name}.pt|durations/{name}.pt|pitch_char/{name}.pt|{text}\n")
    write_text(tmp_path / "with_durations.txt", "".join(lines))
    given = {"config": config, "audio": AudioConfig(), "text": TEXT, "unknown_symbols": "error"}
    for known in (voice, network()):  # the second has no statistics: they are measured over the list
        ours = teacher_forced_dataset(tmp_path, tmp_path / "list.txt", networks={"fastpitch": known}, **given)
        assert torch.equal(ours[1].pitch_frames, data[1].pitch_frames)
        assert ours[1].durations is None
    path = tmp_path / "with_durations.txt"
    for chosen in (config, TINY):
        own = teacher_forced_dataset(tmp_path, path, networks={"fastpitch": voice}, **given | {"config": chosen})
        assert own.collate([own[0], own[2]]).durations.sum(1).tolist() == [data.lengths[0], data.lengths[2]]


def test_words_are_drawn_in_each_epoch_and_the_same_in_each_process(tmp_path: Path):
    write_recordings(tmp_path)
    text = TextConfig(symbol_set="english_expanded", p_arpabet=0.5)
    data, _ = measured(tmp_path, text=text)
    again, _ = measured(tmp_path, text=text)
    drawn = {tuple(data.draw(1, epoch=epoch).tokens[0].tolist()) for epoch in range(1, 9)}
    assert len(drawn) > 1
    assert drawn == {tuple(again.draw(1, epoch=epoch).tokens[0].tolist()) for epoch in range(1, 9)}
    assert data[1].tokens.tolist() == again[1].tokens.tolist()


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


def test_lists_of_the_other_kind_say_what_to_do(tmp_path: Path):
    write_recordings(tmp_path)
    write_text(tmp_path / "list.txt", "wavs/a.wav|pitch/a.pt|text\n")
    assert refused(tmp_path, learned_alignment=False) == (
        "list.txt: has the columns wav|pitch|text, expected mel|durations|pitch|text or wav|text; without durations, "
        "add --learned-alignment"
    )
    write_text(tmp_path / "list.txt", "mels/a.pt|durations/a.pt|pitch_char/a.pt|text\n")
    assert refused(tmp_path) == (
        "list.txt: has the columns mel|durations|pitch|text, expected wav|text or wav|pitch|text or mel|pitch|text"
    )


def test_a_speaker_without_pitch_gets_that_of_all(tmp_path: Path):
    write_recordings(tmp_path, speakers=True)
    soundfile.write(tmp_path / "wavs" / "b.wav", torch.zeros(20000).numpy(), RATE)
    _, voice = measured(tmp_path, n=2, text=TextConfig(speakers=("anna", "carl")))
    assert voice.pitch_mean[1].item() == pytest.approx(voice.pitch_mean[0].item(), rel=1e-6)


def test_text_of_durations_by_attention_is_read_as_the_teacher_read_it(tmp_path: Path):
    default, taught = TextConfig(cleaners=("english_cleaners_v3",)), TextConfig(symbol_set="english_basic")
    assert text_of_teacher(default, tmp_path) is None
    stored = {"model": "Tacotron2", "sha256": "0", "text": to_plain(taught)}
    write_json(tmp_path / "follower.json", stored)
    assert text_of_teacher(default, tmp_path) == (taught, "error")
    write_json(tmp_path / "follower.json", stored | {"unknown_symbols": "drop"})
    assert text_of_teacher(default, tmp_path) == text_of_teacher(taught, tmp_path) == (taught, "drop")
    assert text_of_teacher(replace(default, prepend_space=True), tmp_path) is None
