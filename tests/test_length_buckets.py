"""Batches that are padded more than they need, as to a few shapes in inference, have the results of others."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from test_combinations import new_networks, save_all
from test_fastpitch_1_1 import WITHOUT_DROPOUT, recordings, small

from common.checkpoints.loading import load_for_inference, open_checkpoint
from common.data.batch import join_batches
from common.synthesis.utterances import Controls
from fastpitch.loss_function import FastPitchObjective


def test_a_learned_alignment_is_the_same_with_padding():
    network, batch = small(**WITHOUT_DROPOUT), recordings((5, 9, 7), (12, 9, 30))
    longer = join_batches([batch, recordings((16,), (40,))])  # pads all of them to its size
    rows = {name: value[:3] for name, value in vars(longer).items() if value is not None}
    padded, objective = replace(longer, **rows), FastPitchObjective(energy=True, alignment=True)
    assert padded.prior.shape == (3, 40, 16)
    found = []
    for one in (batch, padded):
        terms = objective.evaluate({"fastpitch": network}, one)
        sum(term.total for term in terms.values()).backward()
        gradients = {name: p.grad for name, p in network.named_parameters() if p.grad is not None}
        found.append(({name: (one.total.item(), one.count.item()) for name, one in terms.items()}, gradients))
        network.zero_grad()
    (plain, expected), (terms, gradients) = found
    assert len(plain) == 10
    for name, values in plain.items():
        assert terms[name] == pytest.approx(values, rel=1e-5, abs=1e-6), name
    assert any(name.startswith("attention.") for name in expected)
    for name, gradient in expected.items():
        torch.testing.assert_close(gradients[name], gradient, rtol=1e-4, atol=1e-4)


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A checkpoint of each tiny generator and vocoder."""
    return save_all(tmp_path_factory.mktemp("checkpoints"), new_networks())


def test_a_generator_makes_mels_of_few_lengths(paths: dict[str, Path]):
    network, _ = load_for_inference(open_checkpoint(paths["FastPitch"], role="generator"), device=torch.device("cpu"))
    tokens = torch.randint(1, 100, (2, 24))
    out = network.infer(tokens, torch.tensor([24, 11]), Controls(frame_step=32))
    plain = network.infer(tokens, torch.tensor([24, 11]))
    assert out.mel.size(2) % 32 == 0 and out.mel.size(2) > plain.mel.size(2)
    assert torch.equal(out.lengths, plain.lengths)
    torch.testing.assert_close(out.mel[:, :, : plain.mel.size(2)], plain.mel)
    assert not out.mel[:, :, plain.mel.size(2) :].any()
