"""A small FastPitch: an utterance does not depend on its batch, and packing changes nothing."""

from dataclasses import replace

import pytest
import torch
from test_fastpitch import assert_close
from tiny import padded_priors
from torch import Tensor

from common.errors import InputError
from common.nn.layers import mask_from_lengths
from common.synthesis.utterances import Controls
from fastpitch.config import ModelConfig
from fastpitch.custom_transforms import pitch_transform_custom
from fastpitch.model import FastPitch, FastPitchBatch
from fastpitch.prosody import PitchTransform

DROPOUTS = ("in_fft_dropout", "in_fft_dropatt", "in_fft_dropemb", "out_fft_dropout", "out_fft_dropatt")
WITHOUT_DROPOUT = dict.fromkeys([f"p_{name}" for name in DROPOUTS], 0.0)
WITHOUT_DROPOUT |= {f"p_{name}_predictor_dropout": 0.0 for name in ("dur", "pitch", "energy")}
SMALL = ModelConfig(
    symbols_embedding_dim=32,
    in_fft_output_size=32,
    out_fft_output_size=32,
    in_fft_n_layers=2,
    out_fft_n_layers=2,
    in_fft_n_heads=2,
    in_fft_d_head=8,
    out_fft_d_head=16,
    in_fft_conv1d_filter_size=48,
    out_fft_conv1d_filter_size=48,
    out_fft_conv1d_kernel_size=5,
    dur_predictor_filter_size=24,
    pitch_predictor_filter_size=24,
    n_speakers=3,
    p_in_fft_dropemb=0.1,
    n_mel_channels=12,
    learned_alignment=True,
    energy_conditioning=True,
    energy_predictor_filter_size=20,
)


def small(**changes) -> FastPitch:
    """A small random voice whose durations are a few frames."""
    torch.manual_seed(7)
    network = FastPitch(replace(SMALL, **changes))
    with torch.no_grad():
        network.duration_predictor.fc.bias.fill_(1.3)
    network.pitch_mean.fill_(200.0)
    network.pitch_std.fill_(50.0)
    return network.eval()


def texts(*lengths: int) -> tuple[Tensor, Tensor]:
    """Random symbols of these lengths, with symbols (not zeros) in the padding."""
    generator = torch.Generator().manual_seed(sum(lengths))
    return torch.randint(1, 148, (len(lengths), max(lengths)), generator=generator), torch.tensor(lengths)


CONTROLS = {
    "plain": Controls(pace=1.6, speaker=2),
    "shift": Controls(pitch_transform=PitchTransform(shift=60.0), speaker=torch.tensor([2, 0, 1, 2])),
    "custom": Controls(pitch_transform=PitchTransform(custom=pitch_transform_custom), pace=0.8),
}


@pytest.mark.parametrize("packs", [True, False])
@pytest.mark.parametrize("name", CONTROLS)
def test_an_utterance_alone_is_spoken_as_in_any_batch(name: str, packs: bool, monkeypatch: pytest.MonkeyPatch):
    if not packs:
        monkeypatch.setattr("torch.compiler.is_compiling", lambda: True)  # then batches stay padded
    network, controls, (tokens, lengths) = small(), CONTROLS[name], texts(23, 4, 1, 11)
    together = network.infer(tokens, lengths, controls)
    for item, length in enumerate(lengths.tolist()):
        speaker = controls.speaker if isinstance(controls.speaker, int) else controls.speaker[item : item + 1]
        one = slice(item, item + 1)
        alone = network.infer(tokens[one, :length], lengths[one], replace(controls, speaker=speaker))
        n_frames = int(alone.lengths)
        assert together.lengths[item] == n_frames
        assert_close(together.mel[item, :, :n_frames], alone.mel[0])
        assert not together.mel[item, :, n_frames:].any() and not together.pitch[item, length:].any()
        assert_close(together.pitch[item, :length], alone.pitch[0])
        assert_close(together.energy[item, :length], alone.energy[0])


def recordings(token_lengths: tuple[int, ...], frame_lengths: tuple[int, ...]) -> FastPitchBatch:
    """Random mels, and pitch and texts with noise in their padding."""
    generator = torch.Generator().manual_seed(5)
    tokens, lengths = texts(*token_lengths)
    pitch = torch.randn(len(frame_lengths), max(frame_lengths), generator=generator)
    mels = torch.randn(len(frame_lengths), 12, max(frame_lengths), generator=generator) - 4
    return FastPitchBatch(
        names=tuple(f"u{item}" for item in range(len(frame_lengths))),
        tokens=tokens,
        token_lengths=lengths,
        mels=mels * mask_from_lengths(torch.tensor(frame_lengths)).unsqueeze(1),
        mel_lengths=torch.tensor(frame_lengths),
        pitch_frames=pitch * (pitch > -0.5),
        prior=padded_priors(frame_lengths, token_lengths),
        speakers=torch.arange(len(frame_lengths)) % 3,
    )


def part(batch: FastPitchBatch, item: int) -> FastPitchBatch:
    """One utterance of a batch."""
    n_tokens, n_frames, one = int(batch.token_lengths[item]), int(batch.mel_lengths[item]), slice(item, item + 1)
    return FastPitchBatch(
        names=batch.names[one],
        tokens=batch.tokens[one, :n_tokens],
        token_lengths=batch.token_lengths[one],
        mels=batch.mels[one, :, :n_frames],
        mel_lengths=batch.mel_lengths[one],
        pitch_frames=batch.pitch_frames[one, :n_frames],
        prior=batch.prior[one, :n_frames, :n_tokens],
        speakers=batch.speakers[one],
    )


def test_an_utterance_alone_is_aligned_and_predicted_as_in_any_batch():
    network, batch = small(), recordings((9, 1, 23, 4), (40, 7, 90, 4))
    together = network.teacher_forced(batch)
    assert torch.equal(together.lengths, batch.mel_lengths)
    assert together.mel.shape == batch.mels.shape
    for item in range(4):
        alone = network.teacher_forced(part(batch, item))
        n_tokens, n_frames = int(batch.token_lengths[item]), int(batch.mel_lengths[item])
        assert_close(alone.mel[0], together.mel[item, :, :n_frames])
        for name in ("target_durations", "target_pitch", "target_energy", "energy", "pitch", "log_durations"):
            assert_close(getattr(alone, name)[0], getattr(together, name)[item, :n_tokens])
            assert bool((getattr(together, name)[item, n_tokens:] == 0).all())


def test_packed_rows_give_the_padded_network_and_its_gradients(monkeypatch: pytest.MonkeyPatch):
    network = small(energy_conditioning=False).double()
    tokens, lengths = texts(17, 1, 9, 2)
    durations = torch.randint(0, 4, tokens.shape, generator=torch.Generator().manual_seed(1))
    durations = durations.index_fill(1, torch.tensor([0]), 1) * mask_from_lengths(lengths)
    n_frames = int(durations.sum(1).max())
    mels, speakers = torch.zeros(4, 12, n_frames), torch.tensor([0, 1, 2, 1])
    batch = FastPitchBatch(("",), tokens, lengths, mels, durations.sum(1), durations, speakers=speakers)
    results = []
    for packs in (True, False):
        monkeypatch.setattr("torch.compiler.is_compiling", lambda packs=packs: not packs)
        network.zero_grad()
        out = network(batch)
        (out.mel.square().sum() + out.pitch.square().sum() + out.log_durations.sum()).backward()
        gradients = {key: p.grad.clone() for key, p in network.named_parameters() if p.grad is not None}
        results.append((out.mel.detach(), gradients))
    torch.testing.assert_close(*[mel for mel, _ in results], atol=1e-12, rtol=0)
    torch.testing.assert_close(*[gradients for _, gradients in results], atol=1e-10, rtol=1e-9)


def test_an_utterance_that_would_have_no_frame_gets_one():
    network = small()
    with torch.no_grad():
        network.duration_predictor.fc.weight.zero_()
        network.duration_predictor.fc.bias.fill_(-3.0)
    out = network.infer(*texts(7, 3))
    assert out.lengths.tolist() == [1, 1]
    assert torch.isfinite(out.mel).all()


def test_a_speaker_that_the_model_does_not_have_is_refused():
    with pytest.raises(InputError, match=r"^speaker 3: this checkpoint has speakers 0 to 2$"):
        small().infer(*texts(4), Controls(speaker=3))
