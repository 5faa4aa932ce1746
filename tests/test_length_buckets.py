"""Mels that are padded to a few lengths are the same."""

from pathlib import Path

import pytest
import torch
from test_combinations import new_networks, save_all

from common.checkpoints.loading import load_for_inference, open_checkpoint
from common.synthesis.utterances import Controls


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
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
