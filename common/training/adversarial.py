"""A vocoder's objective with HiFi-GAN's discriminators, which learn in a phase before its own."""

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from common.training.objective import Networks, Objective, Phase

FEATURE_WEIGHT = 2.0


class AdversarialObjective(Objective):
    """A vocoder's own losses, and the adversarial ones of section 2.4 of arXiv:2010.05646, means over segments.

    ``mpd`` and ``msd`` minimize ``d_loss`` in the phase ``discriminator``, the vocoder ``adversarial_loss`` and
    ``feature_loss``, which has its published weight in its value.
    """

    def __init__(
        self, vocoder: str, own_weights: dict[str, float], *, adversarial: float = 1.0, concat_fwd: bool = False
    ) -> None:
        """``own_weights`` are those of the vocoder's own terms, ``adversarial`` that of the other two; 0: without them.

        With ``concat_fwd`` discriminators score recordings and generated sound in one pass, with the same result.
        """
        own = Phase(vocoder, trains=(vocoder,))
        first = Phase("discriminator", trains=("mpd", "msd"), keeps=(vocoder,))
        self.phases = (first, own) if adversarial else (own,)
        self._own_weights = own_weights
        self._adversarial = dict.fromkeys(("adversarial_loss", "feature_loss"), adversarial) if adversarial else {}
        self._concat_fwd = concat_fwd
        # The last micro-batch and its sounds with the vocoder's graph, kept from the discriminators' phase for the
        # vocoder's, whose weights have not changed.
        self._kept: tuple[Any, tuple[Tensor, Tensor]] | None = None

    @abstractmethod
    def make_sounds(self, networks: Networks, batch: Any) -> tuple[Tensor, Tensor]:
        """Segments of recordings (B, T) and the vocoder's sounds in their place (N * B, T), all segments N times.

        Discriminators see the first of the N.
        """

    @abstractmethod
    def own_counts(self, batch: Any) -> dict[str, Tensor]:
        """The counts of the vocoder's own terms, as in `counts`."""

    @abstractmethod
    def own_sums(self, networks: Networks, batch: Any, recorded: Tensor, made: Tensor) -> dict[str, Tensor]:
        """The sums of the vocoder's own terms, as in `numerators`, of what `make_sounds` gives."""

    def begin_step(self, networks: Networks) -> None:
        if self._adversarial:
            networks["msd"].advance_spectral_norm()
        self._kept = None

    def weights(self, phase: str, *, epoch: int) -> dict[str, float]:
        return {"d_loss": 1.0} if phase == "discriminator" else self._adversarial | self._own_weights

    def counts(self, phase: str, batch: Any) -> dict[str, Tensor]:
        own = {} if phase == "discriminator" else self.own_counts(batch)
        terms = ("d_loss",) if phase == "discriminator" else self._adversarial
        return own | dict.fromkeys(terms, torch.full((), len(batch.names), device=batch.audio.device))

    def numerators(self, phase: str, networks: Networks, batch: Any) -> dict[str, Tensor]:
        kept, self._kept = self._kept, None
        sounds = kept[1] if kept is not None and kept[0] is batch else self.make_sounds(networks, batch)
        recorded, made = (wave[: len(batch.names)].unsqueeze(1) for wave in sounds)
        if phase == "discriminator":
            self._kept = (batch, sounds)
            return {"d_loss": self._discriminator_loss(networks, recorded, made.detach()) * len(batch.names)}
        sums = self.own_sums(networks, batch, *sounds)
        if self._adversarial:
            means = self._vocoder_losses(networks, recorded, made)
            sums |= {name: mean * len(batch.names) for name, mean in means.items()}
        return sums

    def _discriminator_loss(self, networks: Networks, real: Tensor, generated: Tensor) -> Tensor:
        losses = []
        for network in (networks["mpd"], networks["msd"]):
            if self._concat_fwd:
                scores = [score.tensor_split(2) for score in network(torch.cat([real, generated])).scores]
            else:
                scores = list(zip(network(real).scores, network(generated).scores))
            losses += [discriminator_loss(*pair) for pair in scores]
        return torch.stack(losses).sum()

    def _vocoder_losses(self, networks: Networks, real: Tensor, generated: Tensor) -> dict[str, Tensor]:
        """What the discriminators say of the vocoder's sound."""
        adversarial, feature = [], []
        for name in ("mpd", "msd"):
            with torch.no_grad():  # a recording's features are a target: nothing is kept for their gradients
                target = networks[name](real)
            output = networks[name](generated)
            adversarial += [generator_loss(scores) for scores in output.scores]
            feature += [feature_loss(*pair) for pair in zip(target.features, output.features)]
        return {
            "adversarial_loss": torch.stack(adversarial).sum(),
            "feature_loss": FEATURE_WEIGHT * torch.stack(feature).sum(),
        }


def discriminator_loss(of_real: Tensor, of_generated: Tensor) -> Tensor:
    """Least squares: scores of recordings should be 1, of generated sound 0; any shape -> scalar float32."""
    return (1 - of_real).square().mean(dtype=torch.float32) + of_generated.square().mean(dtype=torch.float32)


def generator_loss(of_generated: Tensor) -> Tensor:
    """Least squares: scores of generated sound should be 1; any shape -> scalar float32."""
    return (1 - of_generated).square().mean(dtype=torch.float32)


def feature_loss(of_real: list[Tensor], of_generated: list[Tensor]) -> Tensor:
    """The sum over layers of the mean distance of two waves' features; scalar float32."""
    distances = [(made - real).abs().mean(dtype=torch.float32) for real, made in zip(of_real, of_generated)]
    return torch.stack(distances).sum()
