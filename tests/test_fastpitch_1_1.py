"""FastPitch 1.1 agrees with its published implementation, and an utterance does not depend on its batch."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from golden_files import full_size_listings, listed, read_golden
from safetensors.torch import load_file
from test_fastpitch import (
    SMALL,
    assert_alone_as_in_any_batch,
    assert_close,
    assert_durations_close,
    assert_gradients,
    assert_infers_as_published,
    assert_is_as_listed,
    published,
    texts,
)
from tiny import padded_priors
from torch import Tensor

from common.nn.layers import mask_from_lengths
from common.synthesis.utterances import Controls
from fastpitch.aligner import binarization_sum, forward_sum_losses
from fastpitch.model import FastPitch, FastPitchBatch, FastPitchOutput
from fastpitch.prosody_transforms import PitchTransform

FOLDER = "fastpitch_1_1"
MODELS = listed("fastpitch_1_1/index.json", "models")
DROPOUTS = ("in_fft_dropout", "in_fft_dropatt", "in_fft_dropemb", "out_fft_dropout", "out_fft_dropatt")
WITHOUT_DROPOUT = dict.fromkeys([f"p_{name}" for name in DROPOUTS], 0.0)
WITHOUT_DROPOUT |= {f"p_{name}_predictor_dropout": 0.0 for name in ("dur", "pitch", "energy")}


def run_forward(network: FastPitch, given: dict[str, Tensor], case: dict) -> FastPitchOutput:
    kwargs = dict(case.get("kwargs") or {})
    batch = FastPitchBatch(
        ("",),
        given["in.text"],
        given["in.text_lens"],
        given["in.mel_tgt"],
        given["in.mel_lens"],
        pitch_frames=given["in.pitch_dense"][:, 0] if kwargs.pop("use_gt_pitch", True) else None,
        prior=given["in.attn_prior"] if case.get("attn_prior", True) else None,
        speakers=given.get("in.speaker"),
    )
    return network(batch, **kwargs)


@pytest.mark.parametrize("name", MODELS)
def test_training_passes_give_the_published_numbers(folder: Path, name: str):
    network, cases = published(folder, name)
    for case in [case for case in cases if case["kind"] == "forward"]:
        expected = load_file(folder / case["file"])
        given = load_file(folder / case["inputs_file"])
        out = run_forward(network, given, case)
        mask = expected["out.dec_mask"].transpose(1, 2)
        assert torch.equal(out.target_durations, expected["out.attn_hard_dur"].long())
        assert torch.equal(out.lengths, mask.sum((1, 2)))
        assert_close(out.mel, expected["out.mel_out"].transpose(1, 2) * mask)
        assert_close(out.log_durations, expected["out.log_dur_pred"])
        assert_close(out.pitch, expected["out.pitch_pred"][:, 0])
        assert_durations_close(out.durations, expected["out.dur_pred"])
        if out.target_pitch is not None:
            assert_close(out.target_pitch, expected["out.pitch_tgt"][:, 0])
        if "out.energy_pred" in expected:
            assert_close(out.energy, expected["out.energy_pred"])
            assert_close(out.target_energy, expected["out.energy_tgt"])
        else:
            assert out.energy is out.target_energy is None
        frames = mask_from_lengths(given["in.mel_lens"]).unsqueeze(2)
        torch.testing.assert_close(out.alignment.log_probs, expected["out.attn_logprob"][:, 0], atol=2e-5, rtol=0)
        assert_close(out.alignment.attention(given["in.mel_lens"]), expected["out.attn_soft"][:, 0] * frames)
        hard = torch.nn.functional.one_hot(out.alignment.path, out.target_durations.size(1)) * frames
        assert torch.equal(hard, expected["out.attn_hard"][:, 0].long())
        lengths = given["in.text_lens"], given["in.mel_lens"]
        forward_sum = forward_sum_losses(out.alignment.log_probs, *lengths).mean()
        binarization = binarization_sum(out.alignment, lengths[1]) / lengths[1].sum()
        assert forward_sum.item() == pytest.approx(case["attention_ctc_loss_float64"], rel=3e-6)
        assert binarization.item() == pytest.approx(case["attention_binarization_loss_float64"], rel=3e-6)


@pytest.mark.parametrize("name", MODELS)
def test_inference_gives_the_published_numbers_with_every_control(folder: Path, name: str):
    assert_infers_as_published(folder, *published(folder, name))


def _published_loss(out: FastPitchOutput, given: dict[str, Tensor]) -> Tensor:
    """The loss that the golden gradients are of: mel elements that happen to be zero are left out."""
    tokens = mask_from_lengths(given["in.text_lens"])
    valid = given["in.mel_tgt"] != 0
    durations = torch.log1p(out.target_durations.float())
    lengths = given["in.text_lens"], given["in.mel_lens"]
    loss = (out.mel - given["in.mel_tgt"])[valid].square().mean()
    loss = loss + (out.log_durations - durations)[tokens].square().mean()
    loss = loss + (out.pitch - out.target_pitch)[tokens].square().mean()
    if out.energy is not None:
        loss = loss + 0.1 * (out.energy - out.target_energy)[tokens].square().mean()
    loss = loss + forward_sum_losses(out.alignment.log_probs, *lengths).mean()
    return loss + 0.5 * binarization_sum(out.alignment, lengths[1]) / lengths[1].sum()


@pytest.mark.parametrize("name", MODELS)
def test_gradients_are_as_published(folder: Path, name: str):
    network, cases = published(folder, name)
    case = next(case for case in cases if case["kind"] == "grads")
    given = load_file(folder / case["inputs_file"])
    loss = _published_loss(run_forward(network, given, {}), given)
    assert loss.item() == pytest.approx(case["objective_value"], rel=2e-6)
    assert_gradients(folder, network, loss, case)


@pytest.mark.parametrize(("file", "options"), full_size_listings("fastpitch_1_1/full_size_keys*.json"))
def test_the_full_size_network_has_the_published_names_and_shapes(goldens: Path, file: str, options: set[str]):
    assert_is_as_listed(read_golden(goldens / file), options, learned_alignment=True)


SMALL_1_1 = replace(SMALL, learned_alignment=True, energy_conditioning=True, energy_predictor_filter_size=20)


def small(**changes) -> FastPitch:
    """A small random voice whose durations are a few frames."""
    torch.manual_seed(7)
    network = FastPitch(replace(SMALL_1_1, n_mel_channels=12, **changes))
    with torch.no_grad():
        network.duration_predictor.fc.bias.fill_(1.3)
    network.pitch_mean.fill_(200.0)
    network.pitch_std.fill_(50.0)
    return network.eval()


def raise_by_a_tenth(energy: Tensor, lengths: Tensor) -> Tensor:
    return energy + 0.1


CONTROLS = {
    "plain": Controls(pace=1.6, speaker=2),
    "shift": Controls(pitch_transform=PitchTransform(shift=60.0), speaker=torch.tensor([2, 0, 1, 2])),
    "energy": Controls(energy_transform=raise_by_a_tenth),
}


@pytest.mark.parametrize("name", CONTROLS)
def test_an_utterance_alone_is_spoken_as_in_any_batch(name: str):
    assert_alone_as_in_any_batch(small(), CONTROLS[name])


def test_given_energy_is_spoken_instead_of_the_predicted_one_in_a_batch_too():
    network = small()
    tokens, lengths = texts(9, 5)
    predicted = network.infer(tokens, lengths)
    again = network.infer(tokens, lengths, Controls(energy=predicted.energy))
    torch.testing.assert_close(again.mel, predicted.mel)
    other = network.infer(tokens, lengths, Controls(energy=predicted.energy + 1))
    assert not torch.allclose(other.mel, predicted.mel)
    assert torch.equal(other.energy, predicted.energy)
    raised = network.infer(tokens, lengths, Controls(energy_transform=raise_by_a_tenth))
    by_hand = network.infer(tokens, lengths, Controls(energy=predicted.energy + 0.1))
    torch.testing.assert_close(raised.mel, by_hand.mel)
    torch.testing.assert_close(raised.energy, predicted.energy + 0.1)


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


def test_given_durations_are_used_and_nothing_is_aligned():
    network, batch = small(), recordings((3,), (12,))
    given = replace(batch, durations=torch.tensor([[2, 0, 10]]), pitch=torch.zeros(1, 3), pitch_frames=None, prior=None)
    out = network.teacher_forced(given)
    assert out.alignment is None
    assert torch.equal(out.target_durations, given.durations)
    norms = batch.mels[0].norm(dim=0)
    expected = torch.stack([1 + norms[:2].mean(), torch.ones(()), 1 + norms[2:].mean()]).log()
    torch.testing.assert_close(out.target_energy[0], expected)
