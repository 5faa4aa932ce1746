"""Mels that are padded to a few lengths are the same."""

from pathlib import Path

import torch
from tiny_voice import save_voice

from common.checkpoints.loading import load_for_inference, open_checkpoint
from common.synthesis.utterances import Controls


def test_a_generator_makes_mels_of_few_lengths(tmp_path: Path):
    network, _ = load_for_inference(
        open_checkpoint(save_voice(tmp_path / "a.pt"), role="generator"), device=torch.device("cpu")
    )
    tokens = torch.randint(1, 100, (2, 24))
    out = network.infer(tokens, torch.tensor([24, 11]), Controls(frame_step=32))
    plain = network.infer(tokens, torch.tensor([24, 11]))
    assert out.mel.size(2) % 32 == 0 and out.mel.size(2) > plain.mel.size(2)
    assert torch.equal(out.lengths, plain.lengths)
    torch.testing.assert_close(out.mel[:, :, : plain.mel.size(2)], plain.mel)
    assert not out.mel[:, :, plain.mel.size(2) :].any()
