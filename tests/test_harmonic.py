"""The harmonic vocoder: its sound, data, losses and training, inference.py, and exported files."""

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import tiny_voice
import torch
from test_export import VOICE, network
from tiny_harmonic import AUDIO, harmonic_objective, options, parts, small_network, speech_mel, voice_of
from tiny_vocoder import TINY
from torch import Tensor

import train
from common.audio.mel import SILENT_MEL, MelExtractor
from common.audio.pitch import AT_FRAMES, estimate_pitch
from common.checkpoints.checkpoint import Checkpoint, save_checkpoint
from common.config import AudioConfig, to_plain
from common.errors import InputError, OptionError
from common.nn.discriminators import build_discriminators
from common.nn.layers import SeededNoise
from common.training.adversarial import discriminator_loss, feature_loss, generator_loss
from common.training.objective import Networks
from harmonic.data_function import CONTEXT, PITCH_SEGMENTS, HarmonicDataset
from harmonic.loss_function import magnitudes, stft_distance
from harmonic.model import HarmonicVocoder, draw_noise
from harmonic.source import fill_unvoiced, harmonics, phase_at_frames
from scripts import checkpoint_tools

ALIGNED = AudioConfig(framing="aligned")
ODD = AudioConfig(sampling_rate=16000, hop_length=200, win_length=800, n_mels=40)


def slow_harmonics(pitch: list[float], audio: AudioConfig) -> Tensor:
    """Cosines added one by one in float64, from the first frame's center on, up to the last frame's."""
    hop, rate = audio.hop_length, audio.sampling_rate
    samples = [a + (b - a) * n / hop for a, b in itertools.pairwise(pitch) for n in range(hop)]
    phase, values = 0.0, []
    for value in samples:
        fitting = rate / 2 / value
        count = int(fitting)
        total = sum(math.cos(2 * math.pi * k * phase) for k in range(1, count + 1))
        values.append(total + (fitting - count) * math.cos(2 * math.pi * (count + 1) * phase))
        phase += value / rate
    return torch.tensor(values)


@pytest.mark.parametrize("audio", [AUDIO, ODD], ids=["usual", "odd hop"])
def test_the_closed_form_is_the_sum_of_all_harmonics(audio: AudioConfig):
    pitch = [140.0, 150.0, 230.0, 200.0]
    rows = torch.tensor([pitch])
    wave = harmonics(rows, phase_at_frames(rows, audio), audio)
    assert wave.shape == (1, 3 * audio.hop_length + audio.filter_length)
    start = audio.filter_length // 2
    torch.testing.assert_close(
        wave[0, start : start + 3 * audio.hop_length], slow_harmonics(pitch, audio).float(), atol=0.05, rtol=0
    )


def test_a_long_sound_keeps_its_phase():
    pitch = torch.full((1, 20_000), 199.99)
    cycles = 19_999 * AUDIO.hop_length * 199.99 / AUDIO.sampling_rate
    difference = float(phase_at_frames(pitch, AUDIO)[0, -1]) - cycles
    assert abs(difference - round(difference)) < 0.02  # of a cycle, after four minutes


def test_pitch_is_interpolated_through_unvoiced_frames():
    pitch = torch.tensor([[0.0, 100, 0, 0, 800, 0], [0.0, 0, 0, 0, 0, 0]])
    expected = torch.tensor([[100.0, 100, 200, 400, 800, 800], [200.0] * 6])
    torch.testing.assert_close(fill_unvoiced(pitch), expected)


def spoken(network: HarmonicVocoder, mel: Tensor, track: Tensor, *, corrections: int) -> Tensor:
    """The sound (B, T) of mels with a `HarmonicVocoder.track` and so many corrections."""
    noise = draw_noise(SeededNoise(network.audio.hop_length), 1234, mel, network.audio)
    with torch.no_grad():
        return network.cut(network(mel, track, noise, corrections=corrections), mel.size(2), None)


def test_the_pitch_of_the_track_is_what_is_heard():
    n_frames = 120
    pitch = torch.linspace(110, 260, n_frames)
    network = small_network()
    torch.nn.init.zeros_(network.filter.end.weight)  # phases that vary at random from frame to frame would be heard
    track = network.track_of(pitch[None], torch.ones(1, n_frames))
    wave = spoken(network, speech_mel(n_frames), track, corrections=0)[0]
    found = estimate_pitch(wave.numpy(), AUDIO, n_frames=n_frames, method=AT_FRAMES)
    heard = found > 0
    assert heard[5:35].all() and heard[65:110].all()
    assert np.median(1200 * np.abs(np.log2(found[heard] / pitch.numpy()[heard]))) < 10


@pytest.mark.parametrize("audio", [AUDIO, ALIGNED, ODD], ids=["centered", "aligned", "odd hop"])
def test_corrections_bring_the_mel_near_the_wanted_one(audio: AudioConfig):
    network, mel = small_network(audio), speech_mel(90, audio)
    extractor = MelExtractor(audio)
    errors = []
    for corrections in (0, 2, 8):
        wave = spoken(network, mel, network.track(mel), corrections=corrections)
        assert wave.shape == (1, 90 * audio.hop_length)
        errors.append(float((extractor(wave)[:, :, 4:86] - mel[:, :, 4:86]).abs().mean()))
    assert errors[0] > 2 * errors[1] and errors[1] > errors[2]


RATE = 22050  # Hz
SOUND_WEIGHTS = {"stft_loss": 1.0, "mel_loss": 2.0}
TRAINING = "-m Harmonic --channels 8 --layers 1 --pitch-channels 8 --segment-frames 16 -bs 4".split()


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
    assert (short.mels[0, :, 30:] == SILENT_MEL).all() and not short.voicing[0, 30:].any()


def test_fine_tuning_needs_mels_and_continues_a_vocoder(stored_mels: Path, tmp_path: Path, no_samples: None):
    lists = ["--training-files", str(tmp_path / "list.txt"), "--validation-files", str(tmp_path / "list.txt")]
    command = [*TRAINING, "-bs", "2", "-d", str(tmp_path), *lists, "--epochs", "1", "-o"]
    with pytest.raises(OptionError, match="--fine-tuning needs"):
        train.main([*command, str(tmp_path / "none"), "--fine-tuning"])
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


def test_what_cannot_be_trained_on_is_refused(dataset: HarmonicDataset, tmp_path: Path):
    save(tmp_path / "wavs" / "tiny.wav", torch.zeros(400))
    (tmp_path / "tiny.txt").write_text("wavs/tiny.wav\n")
    short = HarmonicDataset(options(tmp_path), tmp_path / "tiny.txt", audio=AUDIO)
    with pytest.raises(InputError, match=r"tiny.wav: 400 samples, too short to validate on; .* 513 \(.*tiny.txt:1\)"):
        short[0]
    with pytest.raises(InputError, match=r"too short, pitch needs at least 0.040 s.*tiny.wav \(.*tiny.txt:1\)"):
        short.draw(0, epoch=1)
    lists = ["--training-files", str(tmp_path / "list.txt"), "--validation-files", str(tmp_path / "list.txt")]
    with pytest.raises(OptionError, match="--segment-frames 7: the loss needs at least 8 frames"):
        train.main([*TRAINING, "-o", str(tmp_path / "o"), "-d", str(tmp_path), *lists, "--segment-frames", "7"])


def networks() -> Networks:
    """A small vocoder and tiny discriminators of HiFi-GAN."""
    return {"harmonic": small_network().train(), **build_discriminators(TINY)}


def test_the_losses_are_hifigans_and_weigh_against_the_mel_loss_as_there():
    objective, made = harmonic_objective(adversarial=True), networks()
    batch = parts(2, AUDIO)
    with torch.no_grad():
        sums = {phase: objective.numerators(phase, made, batch) for phase in ("discriminator", "harmonic")}
        alone = harmonic_objective().numerators("harmonic", made, batch)
        real, generated = (wave[:2].unsqueeze(1) for wave in objective.generate(made, batch))
        outputs = [[made[name](wave) for wave in (real, generated)] for name in ("mpd", "msd")]
    pairs = [pair for both in outputs for pair in zip(*(output.scores for output in both), strict=True)]
    features = [pair for both in outputs for pair in zip(*(output.features for output in both), strict=True)]
    expected = {
        "d_loss": sum(discriminator_loss(*pair) for pair in pairs),
        "adversarial_loss": sum(generator_loss(score) for _, score in pairs),
        "feature_loss": 2 * sum(feature_loss(*pair) for pair in features),
    }
    found = {**sums["discriminator"], **sums["harmonic"]}
    for name, mean in expected.items():
        torch.testing.assert_close(found.pop(name), mean * 2)  # segments
    torch.testing.assert_close(found, alone)
    weights = objective.weights("harmonic", epoch=1)
    ratios = [weights[name] / weights["mel_loss"] for name in ("adversarial_loss", "feature_loss")]
    assert ratios == pytest.approx([1 / 45] * 2)  # section 2.4 of arXiv:2010.05646, where 2 is in the value


def test_the_discriminators_teach_the_filter_and_not_the_pitch_network():
    made, objective = networks(), harmonic_objective(adversarial=True)
    sums = objective.numerators("harmonic", made, parts(2, AUDIO))
    (sums["adversarial_loss"] + sums["feature_loss"]).backward()
    assert all(parameter.grad is None for parameter in made["harmonic"].pitch.parameters())
    assert all(parameter.grad.abs().max() > 0 for parameter in made["harmonic"].filter.parameters())


def save_vocoder(path: Path, audio: AudioConfig) -> Path:
    """A small vocoder's checkpoint, whose noise is faint."""
    network = small_network(audio)
    n_bins = audio.filter_length // 2 + 1
    torch.nn.init.constant_(network.filter.end.bias[n_bins : 2 * n_bins].detach(), -4)
    config = network.config
    save_checkpoint(path, Checkpoint("Harmonic", config, audio, None, {"harmonic": network.state_dict()}))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A voice, and a vocoder of its mels, each as checkpoint and in ONNX; the vocoder in safetensors, too."""
    made = tmp_path_factory.mktemp("harmonic")
    tiny_voice.save_voice(made / "voice.pt", model=VOICE)
    save_vocoder(made / "harmonic.pt", tiny_voice.AUDIO)
    for name, kind in (("voice", "onnx"), ("harmonic", "onnx"), ("harmonic", "safetensors")):
        checkpoint_tools.export([str(made / f"{name}.pt"), "--format", kind])
    return made


@pytest.mark.parametrize("audio, longest", [(AUDIO, 2000), (replace(ODD, framing="aligned"), 90)], ids=["usual", "odd"])
def test_short_and_long_mels_sound_as_in_pytorch(tmp_path: Path, audio: AudioConfig, longest: int):
    path = save_vocoder(tmp_path / "a.pt", audio)
    checkpoint_tools.export([str(path)])
    expected, made = network(path), network(tmp_path / "a.onnx")
    mel = speech_mel(longest, audio)
    for n_frames in (1, 2, 7, longest):
        waves = [one.infer(mel[:, :, -n_frames:].contiguous(), seed=5) for one in (expected, made)]
        assert waves[0].shape == (1, n_frames * audio.hop_length) and waves[0].abs().max() > 1e-3
        torch.testing.assert_close(waves[1], waves[0], atol=1e-3, rtol=0)
