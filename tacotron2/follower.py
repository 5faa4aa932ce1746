"""Tacotron 2 led through recordings: where it looks while it hears each frame says how long each symbol lasts."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from common.synthesis import MelOutput
from tacotron2.data_function import Tacotron2Batch
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
        device = mels[0].device
        batch = Tacotron2Batch(
            names=tuple(str(row) for row in range(len(tokens))),
            tokens=pad_sequence(list(tokens), batch_first=True).to(device),
            token_lengths=torch.tensor([len(one) for one in tokens], device=device),
            mels=pad_sequence([mel.t() for mel in mels], batch_first=True).transpose(1, 2).contiguous(),
            mel_lengths=torch.tensor([mel.size(1) for mel in mels], device=device),
        )
        return self._network.teacher_forced(batch)
