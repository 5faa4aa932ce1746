"""Measures what FastPitch's aligner needs for one update, compared with the naive form of its distances.

The naive form subtracts each token from each frame, in a tensor of (channels x frames x tokens). Both go forward
through convolutions, distances, prior, search and the alignment's two losses, and backward. Memory is what lives
besides weights and inputs: on a GPU its peak as PyTorch's allocator counts it, on a CPU the peak of all tensors' sizes
after each operation; and what is kept for the backward pass.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from unittest import mock

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from common.cli import ArgumentParser, positive_int, run
from common.errors import OptionError
from common.timing import Stopwatch
from fastpitch import aligner
from fastpitch.aligner import ConvAttention, binarization_sum, forward_sum_losses, padded_priors
from fastpitch.model import ModelConfig
from scripts.benchmarks.machine import choose_device, machine

_MIB = 2**20


class Figures(NamedTuple):
    """One form's."""

    kept: float  # MiB for the backward pass
    peak: float  # MiB
    seconds: float  # forward and backward


def naive_distances(queries: Tensor, keys: Tensor) -> Tensor:
    """As `fastpitch.aligner.squared_distances`: the squared differences one by one, then their sum over channels."""
    return (queries.unsqueeze(3) - keys.unsqueeze(2)).square().sum(1)


class LivingTensors(TorchDispatchMode):
    """Sizes of the storages that operations have made since it was entered, while they live."""

    def __init__(self) -> None:
        super().__init__()
        self.peak = 0  # bytes
        self._living: dict[int, tuple[StorageWeakRef, int]] = {}

    def __torch_dispatch__(
        self, function: Callable, types: Sequence[type], args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one operation, and count what lives after it."""
        given = {storage.data_ptr() for storage in _storages((args, kwargs))}
        result = function(*args, **(kwargs or {}))
        self._living = {key: pair for key, pair in self._living.items() if not pair[0].expired()}
        for storage in _storages(result):
            if storage.data_ptr() not in given and storage._cdata not in self._living:
                self._living[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())
        self.peak = max(self.peak, sum(size for _, size in self._living.values()))
        return result


def _storages(values: Any) -> list[torch.UntypedStorage]:
    """Those of all tensors in nested lists and dicts."""
    leaves = torch.utils._pytree.tree_leaves(values)
    return [leaf.untyped_storage() for leaf in leaves if isinstance(leaf, Tensor)]


def measure(network: ConvAttention, given: dict[str, Tensor], distances: Callable[[Tensor, Tensor], Tensor]) -> Figures:
    """Forward and backward with that form of the distances, three times over: kept, peak, seconds."""
    with mock.patch.object(aligner, "squared_distances", distances):
        _update(network, given)  # compiles the search
        kept: dict[int, int] = {}

        def count(tensor: Tensor) -> Tensor:
            storage = tensor.untyped_storage()
            kept[storage.data_ptr()] = storage.nbytes()
            return tensor

        own = {parameter.untyped_storage().data_ptr() for parameter in (*network.parameters(), *given.values())}
        with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
            loss = _loss(network, given)
        kept_bytes = sum(size for pointer, size in kept.items() if pointer not in own)
        del loss
        peak = _peak(network, given)
        stopwatch = Stopwatch(given["mels"].device)
        with stopwatch.running():
            _update(network, given)
        return Figures(kept_bytes / _MIB, peak / _MIB, stopwatch.seconds)


def _peak(network: ConvAttention, given: dict[str, Tensor]) -> int:
    """The most bytes that an update needs besides weights and inputs."""
    device = given["mels"].device
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        _update(network, given)
        return torch.cuda.max_memory_allocated(device) - before
    with LivingTensors() as living:
        _update(network, given)
    return living.peak


def _update(network: ConvAttention, given: dict[str, Tensor]) -> None:
    _loss(network, given).backward()
    network.zero_grad(set_to_none=True)


def _loss(network: ConvAttention, given: dict[str, Tensor]) -> Tensor:
    alignment = network(**given)
    losses = forward_sum_losses(alignment.log_probs, given["token_lengths"], given["mel_lengths"])
    return losses.mean() + binarization_sum(alignment, given["mel_lengths"]) / given["mel_lengths"].sum()


def make_inputs(*, batch_size: int, n_frames: int, n_tokens: int, device: torch.device) -> dict[str, Tensor]:
    """Random inputs of the full-size aligner, of equal lengths."""
    config = ModelConfig()
    generator = torch.Generator().manual_seed(0)
    mels = torch.randn(batch_size, config.n_mel_channels, n_frames, generator=generator)
    embedded = torch.randn(batch_size, n_tokens, config.symbols_embedding_dim, generator=generator)
    return {
        "mels": mels.to(device),
        "mel_lengths": torch.full((batch_size,), n_frames, device=device),
        "embedded": embedded.to(device),
        "token_lengths": torch.full((batch_size,), n_tokens, device=device),
        "prior": padded_priors([n_frames] * batch_size, [n_tokens] * batch_size).to(device),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Measure both forms and print a table of them and their ratio."""
    parser = ArgumentParser(description="Measure the memory and time of FastPitch's aligner.")
    parser.add_argument("-bs", "--batch-size", type=positive_int, default=16, help="utterances")
    parser.add_argument("--frames", type=positive_int, default=860, help="mel frames of each (default: 10 s)")
    parser.add_argument("--tokens", type=positive_int, default=150, help="symbols of each")
    parser.add_argument("--cuda", action="store_true", help="measure the GPU")
    args = parser.parse_args(argv)
    if args.tokens > args.frames:
        raise OptionError(f"--tokens {args.tokens}: expected at most as many as --frames {args.frames}")
    device = choose_device(cuda=args.cuda)
    sizes = f"{args.batch_size} x ({args.frames} frames, {args.tokens} tokens)"
    print(f"aligner on {machine(cuda=args.cuda)}: {sizes}, float32")
    torch.manual_seed(0)
    config = ModelConfig()
    network = ConvAttention(config.n_mel_channels, config.symbols_embedding_dim, mask_padding=True).to(device)
    given = make_inputs(batch_size=args.batch_size, n_frames=args.frames, n_tokens=args.tokens, device=device)
    naive = measure(network, given, naive_distances)
    ours = measure(network, given, aligner.squared_distances)
    print(f"{'distances':<16} {'kept, MiB':>10} {'peak, MiB':>10} {'seconds':>8}")
    ratios = Figures(*(own / other for own, other in zip(ours, naive)))
    for form, figures, digits in (("one by one", naive, 1), ("matrix product", ours, 1), ("ratio", ratios, 3)):
        print(f"{form:<16} {figures.kept:>10.{digits}f} {figures.peak:>10.{digits}f} {figures.seconds:>8.3f}")
    return 0


if __name__ == "__main__":
    run(main)
