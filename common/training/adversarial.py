"""An objective with discriminators, which are trained in their own phase before the generator's."""

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from common.training.objective import Networks, Objective, Phase


class AdversarialObjective(Objective):
    """A network's own losses plus the adversarial losses of HiFi-GAN (arXiv:2010.05646, section 2.4).

    The adversarial losses are means over utterances. The discriminators minimize ``d_loss`` in the phase
    ``discriminator``; the network minimizes ``adversarial_loss`` and ``feature_loss``.
    """

    discriminators: tuple[str, ...] = ("mpd", "msd")
    feature_scale = 2.0  # multiplies ``feature_loss``
    concat_fwd = False  # whether discriminators score recorded and generated audio in one pass, with the same result

    def __init__(self, network: str, own_weights: dict[str, float], adversarial_weights: dict[str, float]) -> None:
        """Set the weights of the network's own and adversarial terms; without the latter, train no discriminators."""
        own = Phase(network, trains=(network,))
        first = Phase("discriminator", trains=self.discriminators, keeps=(network,))
        self.phases = (first, own) if adversarial_weights else (own,)
        self._own_weights, self._adversarial = own_weights, adversarial_weights
        # The last micro-batch of the discriminators' phase and its output. The network's weights don't change before
        # the next phase, which therefore skips this forward pass.
        self._kept: tuple[Any, Any] | None = None

    @abstractmethod
    def generate(self, networks: Networks, batch: Any) -> Any:
        """Return the network's output; for a vocoder, segments of recordings (B, T) and generated ones (N * B, T).

        Each segment is generated N times; discriminators see only the first version.
        """

    @abstractmethod
    def own_counts(self, batch: Any) -> dict[str, Tensor]:
        """Return the counts of the network's own terms, as in `counts`."""

    @abstractmethod
    def own_sums(self, networks: Networks, batch: Any, output: Any) -> dict[str, Tensor]:
        """Return the sums of the network's own terms, as in `numerators`, for an output of `generate`."""

    def scored(self, batch: Any, output: Any) -> tuple[Tensor, Tensor]:
        """Return the recorded and generated parts of an output of `generate` that discriminators score."""
        recorded, made = output
        return recorded.unsqueeze(1), made[: len(batch.names)].unsqueeze(1)

    def begin_step(self, networks: Networks) -> None:
        if self._adversarial and "msd" in self.discriminators:
            networks["msd"].advance_spectral_norm()
        self._kept = None

    def weights(self, phase: str, *, epoch: int) -> dict[str, float]:
        return {"d_loss": 1.0} if phase == "discriminator" else self._adversarial | self._own_weights

    def counts(self, phase: str, batch: Any) -> dict[str, Tensor]:
        if phase == "discriminator":
            return {"d_loss": batch.n_utterances}
        return self.own_counts(batch) | dict.fromkeys(self._adversarial, batch.n_utterances)

    def numerators(self, phase: str, networks: Networks, batch: Any) -> dict[str, Tensor]:
        kept, self._kept = self._kept, None
        output = kept[1] if kept is not None and kept[0] is batch else self.generate(networks, batch)
        if phase == "discriminator":
            self._kept = batch, output
            means = {"d_loss": self._discriminator_loss(networks, *self.scored(batch, output))}
            sums = {}
        else:
            sums = self.own_sums(networks, batch, output)
            means = self._adversarial_losses(networks, *self.scored(batch, output)) if self._adversarial else {}
        return sums | {name: mean * len(batch.names) for name, mean in means.items()}

    def _discriminator_loss(self, networks: Networks, real: Tensor, generated: Tensor) -> Tensor:
        losses, generated = [], generated.detach()
        for name in self.discriminators:
            if self.concat_fwd:
                scores = [score.tensor_split(2) for score in networks[name](torch.cat([real, generated])).scores]
            else:
                scores = list(zip(networks[name](real).scores, networks[name](generated).scores))
            losses += [discriminator_loss(*pair) for pair in scores]
        return torch.stack(losses).sum()

    def _adversarial_losses(self, networks: Networks, real: Tensor, generated: Tensor) -> dict[str, Tensor]:
        adversarial, feature = [], []
        for name in self.discriminators:
            with torch.no_grad():  # the recordings' features are the target
                target = networks[name](real)
            output = networks[name](generated)
            adversarial += [generator_loss(scores) for scores in output.scores]
            feature += [feature_loss(*pair) for pair in zip(target.features, output.features)]
        return {
            "adversarial_loss": torch.stack(adversarial).sum(),
            "feature_loss": self.feature_scale * torch.stack(feature).sum(),
        }


def discriminator_loss(of_real: Tensor, of_generated: Tensor) -> Tensor:
    """Least-squares loss: recordings should score 1, generated audio 0; any shape -> scalar float32."""
    return (1 - of_real).square().mean(dtype=torch.float32) + of_generated.square().mean(dtype=torch.float32)


def generator_loss(of_generated: Tensor) -> Tensor:
    """Least-squares loss: generated audio should score 1; any shape -> scalar float32."""
    return (1 - of_generated).square().mean(dtype=torch.float32)


def feature_loss(of_real: list[Tensor], of_generated: list[Tensor]) -> Tensor:
    """Sum the features' mean absolute differences over layers; scalar float32."""
    distances = [(made - real).abs().mean(dtype=torch.float32) for real, made in zip(of_real, of_generated)]
    return torch.stack(distances).sum()
