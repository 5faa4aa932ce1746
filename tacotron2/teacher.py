"""Tacotron 2 as a teacher: durations and mels of recordings from its attention under teacher forcing."""

from collections.abc import Sequence

import torch
from torch import Tensor

from common.synthesis.controls import MelOutput
from tacotron2.data_function import Tacotron2Dataset, Tacotron2Utterance
from tacotron2.model import Tacotron2


class Tacotron2Teacher:
    """`common.extraction.teacher.TeacherModel` of a network in evaluation mode, on the device of its mels."""

    def __init__(self, network: Tacotron2) -> None:
        self._network = network

    @torch.inference_mode()
    def __call__(self, tokens: Sequence[Tensor], mels: Sequence[Tensor]) -> MelOutput:
        """tokens (L,) and mels (n_mels, F) of utterances -> `Tacotron2.teacher_forced`."""
        items = [Tacotron2Utterance(str(row), *pair) for row, pair in enumerate(zip(tokens, mels))]
        return self._network.teacher_forced(Tacotron2Dataset.collate(items).to(mels[0].device))
