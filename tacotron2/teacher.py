"""Tacotron 2 as a teacher: durations and mels of recordings from its attention under teacher forcing."""

from collections.abc import Sequence

import torch
from torch import Tensor

from common.synthesis.controls import MelOutput
from tacotron2.data_function import Tacotron2Dataset, Tacotron2Utterance
from tacotron2.model import Tacotron2


@torch.inference_mode()
def teach(network: Tacotron2, tokens: Sequence[Tensor], mels: Sequence[Tensor]) -> MelOutput:
    """`Tacotron2.teacher_forced` of utterances, tokens (L,) and mels (n_mels, F), in evaluation mode."""
    items = [Tacotron2Utterance(str(row), *pair) for row, pair in enumerate(zip(tokens, mels))]
    return network.teacher_forced(Tacotron2Dataset.collate(items).to(mels[0].device))
