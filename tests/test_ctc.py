"""CTC's losses and gradients are those of PyTorch's loss in float64, of any lengths and repetitions."""

from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from common.nn import ctc_losses


def own(logits: Tensor, tokens: Tensor, token_lengths: Tensor, frame_lengths: Tensor) -> Tensor:
    log_probs = logits.log_softmax(2)
    repeated = F.pad(tokens[:, 1:] == tokens[:, :-1], (1, 0)) if tokens.size(1) else tokens.bool()
    of_tokens = log_probs.gather(2, tokens.unsqueeze(1).expand(-1, logits.size(1), -1))
    return ctc_losses(of_tokens, log_probs[:, :, 0], token_lengths, frame_lengths, repeated=repeated)


def expected(logits: Tensor, tokens: Tensor, token_lengths: Tensor, frame_lengths: Tensor) -> Tensor:
    log_probs = logits.log_softmax(2).transpose(0, 1)
    return F.ctc_loss(log_probs, tokens, frame_lengths, token_lengths, reduction="none", zero_infinity=True)


def gradient(losses: Tensor, logits: Tensor) -> Tensor:
    weights = torch.arange(1.0, len(losses) + 1)  # another one for each utterance
    return torch.autograd.grad((losses.masked_fill(losses.isinf(), 0.0) * weights).sum(), logits)[0]


@pytest.mark.parametrize("n_classes", [2, 3, 6])  # of two, all tokens are the same
@pytest.mark.parametrize("seed", range(12))
def test_losses_and_gradients_are_pytorchs(n_classes: int, seed: int):
    torch.manual_seed(seed)
    n_frames, n_tokens = int(torch.randint(1, 14, ())), int(torch.randint(0, 7, ()))
    logits = (3 * torch.randn(5, n_frames, n_classes, dtype=torch.float64)).requires_grad_()
    tokens = torch.randint(1, n_classes, (5, n_tokens))
    lengths = torch.randint(0, n_tokens + 1, (5,)), torch.randint(1, n_frames + 1, (5,))
    losses, truth = own(logits, tokens, *lengths), expected(logits, tokens, *lengths)
    torch.testing.assert_close(losses.masked_fill(losses.isinf(), 0.0), truth)
    assert torch.equal(losses.isinf(), expected_impossible(tokens, *lengths))
    torch.testing.assert_close(gradient(losses, logits), gradient(truth, logits))
    with torch.no_grad():
        assert torch.equal(own(logits, tokens, *lengths), losses)


def expected_impossible(tokens: Tensor, token_lengths: Tensor, frame_lengths: Tensor) -> Tensor:
    """Whether there are fewer frames than tokens and the blanks between tokens that are the same."""
    rows = [row[:length].tolist() for row, length in zip(tokens, token_lengths.tolist())]
    needed = [len(row) + sum(one == other for one, other in pairwise(row)) for row in rows]
    return torch.tensor(needed) > frame_lengths


def test_gradients_of_long_utterances_in_float32_are_closer_to_the_truth_than_pytorchs():
    torch.manual_seed(0)
    logits = (3 * torch.randn(2, 400, 41)).requires_grad_()
    tokens, lengths = torch.arange(1, 41).expand(2, -1), (torch.tensor([40, 33]), torch.tensor([400, 310]))
    exact = logits.detach().double().requires_grad_()
    truth = gradient(expected(exact, tokens, *lengths), exact)
    errors = [float((gradient(form(logits, tokens, *lengths), logits) - truth).abs().max()) for form in (own, expected)]
    assert errors[0] < 1e-5 < 1e-4 < errors[1]
