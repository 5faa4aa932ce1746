"""A toy adversarial objective: two phases, two optimizers, terms with different counts, in a hundred lines."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar

import torch
from torch import Tensor, nn

from common.data.batch import Batch
from common.distributed import Ranks
from common.nn.layers import mask_from_lengths
from common.training.engine import Engine
from common.training.objective import LogStyle, Networks, Objective, Phase, Term
from common.training.optim import Optimization
from common.training.options import RunOptions

T = TypeVar("T")


@dataclass(frozen=True)
class ToyBatch(Batch):
    """Padded sequences to imitate."""

    inputs: Tensor  # (B, T)
    targets: Tensor  # (B, T)
    lengths: Tensor  # (B,)

    @property
    def frame_lengths(self) -> Tensor:
        return self.lengths


class Pointwise(nn.Module):
    """A two-layer network on each value of a sequence: (B, T) -> (B, T)."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x.unsqueeze(2)).squeeze(2)


class ToyObjective(Objective):
    """Least-squares adversarial training with an L1 term, as HiFi-GAN's in small."""

    phases = (Phase("discriminator", ("critic",)), Phase("generator", ("generator",)))
    log_style = LogStyle({"d_loss": "d loss", "g_loss": "g loss"})

    def weights(self, phase: str, *, epoch: int) -> dict[str, float]:
        return {"d_loss": 1.0} if phase == "discriminator" else {"g_loss": 0.5, "l1": 2.0}

    def counts(self, phase: str, batch: ToyBatch) -> dict[str, Tensor]:
        frames, items = batch.lengths.sum(), torch.tensor(len(batch.lengths))
        return {"d_loss": frames} if phase == "discriminator" else {"g_loss": frames, "l1": frames, "bias": items}

    def numerators(self, phase: str, networks: Networks, batch: ToyBatch) -> dict[str, Tensor]:
        mask = mask_from_lengths(batch.lengths, batch.inputs.size(1))
        made = networks["generator"](batch.inputs)
        if phase == "discriminator":
            real, fake = networks["critic"](batch.targets), networks["critic"](made.detach())
            return {"d_loss": (((1 - real) ** 2 + fake**2) * mask).float().sum()}
        fooled = (1 - networks["critic"](made)) ** 2
        error = (made - batch.targets) * mask
        return {
            "g_loss": (fooled * mask).float().sum(),
            "l1": error.abs().float().sum(),
            "bias": (error.sum(1) / batch.lengths).float().sum(),
        }

    def evaluate(self, networks: Networks, batch: ToyBatch) -> dict[str, Term]:
        sums = self.numerators("generator", networks, batch)
        return {name: Term(total, self.counts("generator", batch)[name]) for name, total in sums.items()}


class KeepingObjective(ToyObjective):
    """Uses the generator's forward pass of the first phase again in the second."""

    phases = (Phase("discriminator", ("critic",), keeps=("generator",)), ToyObjective.phases[1])

    def __init__(self) -> None:
        self.made: dict[tuple[str, ...], Tensor] = {}
        self.order: list[tuple[str, tuple[str, ...]]] = []

    def numerators(self, phase: str, networks: Networks, batch: ToyBatch) -> dict[str, Tensor]:
        self.order.append((phase, batch.names))
        if phase == "discriminator":
            self.made[batch.names] = networks["generator"](batch.inputs)
            return super().numerators(phase, networks, batch)
        made = self.made.pop(batch.names)
        return super().numerators(phase, networks | {"generator": lambda inputs: made}, batch)


def split(items: Sequence[T], sizes: Iterable[int]) -> list[Sequence[T]]:
    """The items in order, in parts of these sizes."""
    ends = list(accumulate(sizes))
    return [items[start:end] for start, end in zip([0, *ends], ends)]


def weights(networks: Networks) -> dict[str, Tensor]:
    """A copy of all weights and buffers, by network and name."""
    return {f"{n}.{k}": v.detach().clone() for n, net in networks.items() for k, v in net.state_dict().items()}


def toy_utterances(count: int, *, seed: int = 0) -> list[ToyBatch]:
    """Sequences of different lengths, a batch of one each."""
    generator = torch.Generator().manual_seed(seed)
    utterances = []
    for index in range(count):
        length = int(torch.randint(3, 12, (), generator=generator))
        x = torch.randn(1, length, generator=generator)
        utterances.append(ToyBatch((f"u{index}",), x, torch.sin(3 * x), torch.tensor([length])))
    return utterances


def toy_collate(utterances: list[ToyBatch]) -> ToyBatch:
    """One padded batch; padding holds garbage, which masks must keep out."""
    size = max(int(u.lengths) for u in utterances)

    def pad(tensors: list[Tensor]) -> Tensor:
        rows = torch.full((len(tensors), size), 7.0)
        for row, tensor in zip(rows, tensors):
            row[: tensor.size(1)] = tensor[0]
        return rows

    return ToyBatch(
        names=tuple(u.names[0] for u in utterances),
        inputs=pad([u.inputs for u in utterances]),
        targets=pad([u.targets for u in utterances]),
        lengths=torch.cat([u.lengths for u in utterances]),
    )


def toy_networks(*, seed: int = 0) -> Networks:
    """The two networks, with weights of a seed."""
    torch.manual_seed(seed)
    return {"generator": Pointwise(), "critic": Pointwise()}


def toy_engine(
    networks: Networks,
    *,
    objective: Objective | None = None,
    ranks: Ranks | None = None,
    optimizer: str = "adam",
    learning_rate: float = 0.01,
    betas: tuple[float, float] = (0.9, 0.98),
    eps: float = 1e-9,
    amp_dtype: torch.dtype | None = None,
    same_shapes: bool = False,
    **options,
) -> Engine:
    """An engine with one optimizer a phase at a constant rate, and further options of the run."""
    run = RunOptions(optimizer=optimizer, learning_rate=learning_rate, **options)
    optimization = Optimization(lambda iteration, *_: learning_rate, betas=betas, eps=eps)
    given = {"ranks": ranks or Ranks(), "amp_dtype": amp_dtype, "same_shapes": same_shapes}
    return Engine(networks, objective or ToyObjective(), optimization, run, **given)
