"""From the network's log-probabilities to label ids."""

import torch
from torch import Tensor

from common.nn.layers import mask_from_lengths


def greedy_decode(log_probs: Tensor, lengths: Tensor | None, *, blank: int) -> list[list[int]]:
    """The likeliest label of each frame, repeats merged and blanks left out (Graves et al. 2006, section 3.2).

    log_probs (B, F, n_classes), lengths (B,) frames -> for each utterance its label ids. Frames past an utterance's
    end say nothing; without ``lengths`` all frames count, as in the published evaluation.
    """
    best = log_probs.argmax(dim=2)
    if lengths is not None:
        best = best.masked_fill(~mask_from_lengths(lengths, best.size(1)), blank)
    before = torch.nn.functional.pad(best, (1, 0), value=blank)[:, :-1]
    speaks = (best != blank) & (best != before)
    # Two copies from the device, whatever the batch.
    best, speaks = best.cpu(), speaks.cpu()
    return [row[chosen].tolist() for row, chosen in zip(best, speaks)]
