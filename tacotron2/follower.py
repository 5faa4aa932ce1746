"""Tacotron 2 led through recordings: where it looks while it hears each frame says how long each symbol lasts."""

from collections.abc import Sequence

import torch
from torch import Tensor

from common.synthesis.controls import MelOutput
from tacotron2.data_function import Tacotron2Utterance, collate
from tacotron2.model import Tacotron2


class Follower:
    """A network that is ready to infer, on the device of the mels it is given."""

    def __init__(self, network: Tacotron2) -> None:
        self._network = network

    @torch.inference_mode()
    def __call__(self, tokens: Sequence[Tensor], mels: Sequence[Tensor]) -> MelOutput:
        """tokens (L,) and mels (n_mels, F) of utterances -> what `Tacotron2.teacher_forced` makes of them.

        The prenet's dropout is the same for every utterance and each time.
        """
        pairs = enumerate(zip(tokens, mels))
        batch = collate([Tacotron2Utterance(str(row), one, mel) for row, (one, mel) in pairs])
        return self._network.teacher_forced(batch.to(mels[0].device))
