"""What the harmonic vocoder learns from: segments, their pitch, its losses, its schedule, and lists it refuses."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import soundfile
import torch
from tiny_harmonic import AUDIO, harmonic_objective, options, small_network, voice_of
from tiny_models import logged, without_samples
from tiny_vocoder import make_recordings
from torch import Tensor

import train
from common.audio.mel import MelExtractor
from common.audio.pitch import AT_FRAMES, estimate_pitch
from common.audio.wav import load_wav
from common.config import to_plain
from common.data.recordings import SILENCE
from common.errors import InputError, OptionError
from harmonic.data_function import CONTEXT, PITCH_SEGMENTS, HarmonicDataset
from harmonic.loss_function import magnitudes, stft_distance

RATE = 22050  # Hz
SOUND_WEIGHTS = {"stft_loss": 1.0, "mel_loss": 2.0}
TINY = "-m Harmonic --channels 8 --layers 1 --pitch-channels 8 --segment-frames 16 -bs 4".split()


def save(path: Path, wave: Tensor) -> None:
    path.parent.mkdir(exist_ok=True)
    soundfile.write(path, wave.numpy(), RATE, subtype="PCM_16")


@pytest.fixture
def dataset(tmp_path: Path) -> HarmonicDataset:
    """Two recordings of two seconds: a glide from 150 to 250 Hz, and one shorter than a segment."""
    save(tmp_path / "wavs" / "glide.wav", voice_of(torch.linspace(150, 250, 2 * RATE)))
    save(tmp_path / "wavs" / "short.wav", voice_of(torch.full((RATE // 8,), 200.0)))
    (tmp_path / "list.txt").write_text("wavs/glide.wav\nwavs/short.wav\n")
    return HarmonicDataset(options(tmp_path), tmp_path / "list.txt", audio=AUDIO)


def test_the_pitch_of_a_part_is_that_of_its_sound_at_any_speed(dataset: HarmonicDataset):
    for epoch in range(1, 13):  # of which some are faster, some slower and some as recorded
        item = dataset.draw(0, epoch=epoch)
        n_frames = item.pitch.size(1)
        assert n_frames == PITCH_SEGMENTS * (16 + 2 * CONTEXT) == item.mel_noise.size(2)
        assert item.audio.size(1) == (n_frames - 1) * 256 + 1024
        # Frames of the part begin with its samples: their centers lie two hops behind those of centered frames.
        wave = item.audio[0].numpy()
        found = torch.from_numpy(estimate_pitch(wave, AUDIO, n_frames=n_frames + 2, method=AT_FRAMES))[2:]
        both = (found > 0) & (item.voicing[0] > 0)
        assert both[:16].all()
        assert (1200 * (found[both] / item.pitch[0, both]).log2()).abs().median() < 5


def test_the_segment_of_a_part_lies_in_its_recording_and_zeros_follow_its_end(dataset: HarmonicDataset):
    for epoch in range(1, 30):
        item = dataset.draw(0, epoch=epoch)
        assert item.audio[0, : item.noise.size(2)].abs().unfold(0, 2000, 2000).amax(1).min() > 0.05
    short = dataset.draw(1, epoch=1)
    assert short.audio[0, : RATE // 20].abs().max() > 0.05 and (short.audio[0, RATE // 4 :] == 0).all()
    assert short.voicing[0, :3].all() and not short.voicing[0, 30:].any()


def test_validation_reads_complete_recordings_with_their_pitch(dataset: HarmonicDataset, tmp_path: Path):
    item = dataset[0]
    assert torch.equal(item.audio[0], load_wav(tmp_path / "wavs" / "glide.wav", sampling_rate=RATE))
    assert item.pitch[0, 5:-5].diff().min() > 0 and item.voicing[0, 5:-5].all()
    batch = dataset.collate([dataset[0], dataset[1]])
    assert batch.audio.shape == (2, 2 * RATE) and batch.n_samples == (2 * RATE, RATE // 8)
    terms = harmonic_objective().evaluate({"harmonic": small_network()}, batch)
    alone = harmonic_objective().evaluate({"harmonic": small_network()}, dataset[1])
    both = harmonic_objective().evaluate({"harmonic": small_network()}, dataset[0])
    for name, term in terms.items():
        torch.testing.assert_close(term.total, alone[name].total + both[name].total, rtol=1e-4, atol=1e-4)
        assert float(term.count) == float(alone[name].count + both[name].count)


@pytest.fixture
def stored_mels(dataset: HarmonicDataset, tmp_path: Path) -> Path:
    """A folder with the mel of each of the recordings, as extraction stores them."""
    folder = tmp_path / "mels"
    folder.mkdir()
    for index, name in enumerate(("glide", "short")):
        torch.save(MelExtractor(AUDIO)(dataset[index].audio)[0], folder / f"{name}.pt")
    (folder / "audio.json").write_text(json.dumps(to_plain(AUDIO)))
    return folder


def test_a_stored_mel_takes_the_place_of_the_parts_own(stored_mels: Path, tmp_path: Path):
    """Stored mels of the recordings themselves: parts are as recorded, and their losses as without stored mels."""
    known = {"audio": AUDIO, "training": True}
    data = HarmonicDataset(options(tmp_path, input_mels_dir=stored_mels), tmp_path / "list.txt", **known)
    objective, networks, starts = harmonic_objective(), {"harmonic": small_network()}, set()
    for epoch in range(1, 8):
        item = data.draw(0, epoch=epoch)
        inside = MelExtractor(AUDIO).of_frames(item.audio)[0]
        n_inside = int((item.audio[0] != 0).nonzero().max()) // AUDIO.hop_length - 4  # before the recording's end
        torch.testing.assert_close(item.mels[0, :, :n_inside], inside[:, :n_inside], rtol=1e-4, atol=1e-4)
        starts.add(float(item.audio[0, 0]))
        sums = [objective.numerators("harmonic", networks, one) for one in (item, replace(item, mels=None))]
        for name in SOUND_WEIGHTS:
            torch.testing.assert_close(sums[0][name], sums[1][name], rtol=1e-3, atol=1e-3)
    assert len(starts) > 4
    changed = objective.numerators("harmonic", networks, replace(item, mels=item.mels - 1))
    assert (changed["mel_loss"] - sums[0]["mel_loss"]).abs() > 0.1
    short = data.draw(1, epoch=1)
    assert (short.mels[0, :, 30:] == SILENCE).all() and not short.voicing[0, 30:].any()
    both = data.collate([data[0], data[1]])
    changed, terms = (objective.evaluate(networks, one) for one in (replace(both, mels=both.mels - 1), both))
    assert (
        abs(float(terms["mel_loss"].total - objective.evaluate(networks, replace(both, mels=None))["mel_loss"].total))
        < 0.01
    )
    assert float(changed["mel_loss"].total) > float(terms["mel_loss"].total) + 0.1


def test_fine_tuning_needs_mels_and_a_trained_vocoder_and_continues_one(stored_mels: Path, tmp_path: Path):
    lists = ["--training-files", str(tmp_path / "list.txt"), "--validation-files", str(tmp_path / "list.txt")]
    command = [*TINY, "-bs", "2", "-d", str(tmp_path), *lists, "--epochs", "1", "-o"]
    for given in ([], ["--input-mels-dir", str(stored_mels)]):
        with pytest.raises(OptionError, match="--fine-tuning needs"):
            train.main([*command, str(tmp_path / "none"), "--fine-tuning", *given])
    train.main([*command, str(tmp_path / "first")])
    first = tmp_path / "first" / "Harmonic_checkpoint_1.pt"
    tuned = ["--fine-tuning", "--input-mels-dir", str(stored_mels), "--from-checkpoint", str(first)]
    train.main([*command, str(tmp_path / "tuned"), *tuned])
    assert (tmp_path / "tuned" / "Harmonic_checkpoint_1.pt").is_file()


def test_the_spectral_distance_is_zero_of_the_same_sound_and_that_of_its_paper_else():
    generator = torch.Generator().manual_seed(0)
    first, second = torch.randn(2, 1, 1536, generator=generator)
    spectra = [magnitudes(wave, size=512) for wave in (first, second)]
    assert float(stft_distance(spectra, 0, 0)) < 1e-6
    window = torch.hann_window(512)
    slow = [
        torch.stack([torch.fft.rfft(wave[0, start : start + 512] * window).abs() for start in range(0, 1025, 128)])
        for wave in (first, second)
    ]
    expected = (slow[0] - slow[1]).norm() / slow[0].norm()
    expected += (slow[0].clamp(min=1e-3).log() - slow[1].clamp(min=1e-3).log()).abs().mean()
    distance = stft_distance(spectra, 0, 1)
    torch.testing.assert_close(distance[0], expected, rtol=1e-4, atol=0)


def test_noise_of_a_recordings_strength_costs_less_than_weaker_noise():
    generator = torch.Generator().manual_seed(0)
    recorded, first, second = 0.1 * torch.randn(3, 8, 8192, generator=generator)
    objective = harmonic_objective()
    losses = [objective.sound_sums(recorded, gain * first, gain * second) for gain in (0.7, 0.9, 1.0, 1.1)]
    costs = [float(sum(weight * one[name] for name, weight in SOUND_WEIGHTS.items())) for one in losses]
    assert costs[0] > costs[1] and costs[2] < costs[3]
    alone = objective.sound_sums(recorded, first)
    twice = objective.sound_sums(recorded, first, first)
    for name, value in alone.items():
        torch.testing.assert_close(twice[name], value)
        assert losses[2][name] < value


def test_silence_has_finite_losses_and_gradients(tmp_path: Path):
    save(tmp_path / "wavs" / "silence.wav", torch.zeros(RATE))
    (tmp_path / "list.txt").write_text("wavs/silence.wav\n")
    dataset = HarmonicDataset(options(tmp_path), tmp_path / "list.txt", audio=AUDIO)
    network = small_network()
    batch, objective = dataset.draw(0, epoch=1), harmonic_objective()
    sums = objective.numerators("harmonic", {"harmonic": network}, batch)
    sum(sums[name] for name in objective.weights("harmonic", epoch=1)).backward()
    assert all(parameter.grad.isfinite().all() for parameter in network.parameters())


def test_the_sound_teaches_the_pitch_network_nothing(dataset: HarmonicDataset):
    network = small_network()
    batch = dataset.draw(0, epoch=1)
    sums = harmonic_objective().numerators("harmonic", {"harmonic": network}, batch)
    (sums["stft_loss"] + sums["mel_loss"]).backward(retain_graph=True)
    assert all(parameter.grad is None for parameter in network.pitch.parameters())
    assert all(parameter.grad.abs().max() > 0 for parameter in network.filter.parameters())
    before = [parameter.grad.clone() for parameter in network.filter.parameters()]
    (sums["pitch_loss"] + sums["voicing_loss"]).backward()
    assert all(torch.equal(old, one.grad) for old, one in zip(before, network.filter.parameters()))
    assert all(parameter.grad.abs().max() > 0 for parameter in network.pitch.parameters())


def test_a_network_learns_pitch_and_sound_of_a_few_recordings(tmp_path: Path):
    corpus = make_recordings(tmp_path / "corpus", count=12)
    lists = ["--training-files", str(corpus / "train.txt"), "--validation-files", str(corpus / "val.txt")]
    words = [*TINY, "-o", str(tmp_path / "out"), "-d", str(corpus), *lists, "--epochs", "30", "-lr", "5e-3"]
    with without_samples():
        assert train.main([*words, "--validation-interval", "29"]) == 0
    losses = logged(tmp_path / "out", "avg_train_loss")
    assert losses[-1] < 0.85 * losses[0]
    assert logged(tmp_path / "out", "val_pitch_error")[-1] < 400  # cents; of new weights they are some 1,500


def test_what_cannot_be_trained_on_is_refused(dataset: HarmonicDataset, tmp_path: Path):
    save(tmp_path / "wavs" / "tiny.wav", torch.zeros(400))
    (tmp_path / "tiny.txt").write_text("wavs/tiny.wav\n")
    short = HarmonicDataset(options(tmp_path), tmp_path / "tiny.txt", audio=AUDIO)
    with pytest.raises(InputError, match=r"tiny.wav: 400 samples, too short to validate on; .* 513 \(.*tiny.txt:1\)"):
        short[0]
    with pytest.raises(InputError, match=r"too short, pitch needs at least 0.040 s.*tiny.wav \(.*tiny.txt:1\)"):
        short.draw(0, epoch=1)
    lists = ["--training-files", str(tmp_path / "list.txt"), "--validation-files", str(tmp_path / "list.txt")]
    with pytest.raises(OptionError, match="--segment-frames 7: the loss needs at least 8 such frames"):
        train.main([*TINY, "-o", str(tmp_path / "o"), "-d", str(tmp_path), *lists, "--segment-frames", "7"])
