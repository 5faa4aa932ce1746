"""The contract between a model's losses and the engine that trains it."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from common.audio.mel import MelExtractor
from common.config import AudioConfig
from common.training.verdict import Aligned

Networks = dict[str, Any]  # modules by name, as the model's package builds them
N_EXAMPLES = 2  # utterances of a validation batch


@dataclass(frozen=True)
class Phase:
    """A part of an update that ends with a step of its own optimizer."""

    name: str
    trains: tuple[str, ...]  # names of the networks it updates; the others are frozen
    # Networks that aren't frozen because the next phase backpropagates through their outputs of this phase. The last
    # micro-batch's graph is kept, so the engine gives the next phase its micro-batches in reverse order.
    keeps: tuple[str, ...] = ()


@dataclass(frozen=True)
class Term:
    """A loss term as a sum and the number of elements it is summed over; its value is total / count."""

    total: Tensor  # scalar
    count: Tensor  # scalar


@dataclass(frozen=True)
class Example:
    """A validation utterance for plots and audio."""

    name: str
    mels: dict[str, Tensor]  # title -> (n_mels, F), for example {"target": ..., "predicted": ...}
    mel_config: AudioConfig | None = None  # of the mels, if different from the run's
    text: str = ""
    tokens: Tensor | None = None  # (L,) int64 symbol ids
    durations: Tensor | None = None  # (L,) frames
    alignment: Tensor | None = None  # (F, L) attention weights of each frame
    pitch: dict[str, Tensor] = field(default_factory=dict)  # title -> (F,) Hz, 0 where unvoiced
    curves: dict[str, dict[str, Tensor]] = field(default_factory=dict)  # name with unit -> title -> (F,)
    audio: dict[str, Tensor] = field(default_factory=dict)  # title -> (T,) in [-1, 1]
    texts: dict[str, str] = field(default_factory=dict)  # title -> text, also printed on stdout


@dataclass(frozen=True)
class LogStyle:
    """How a model's figures are printed on stdout."""

    terms: dict[str, str]  # term -> its name on stdout, in order
    format: str = "{:>5.2f}"
    shows_total: bool = True  # whether ``loss``, the weighted sum of all terms, is shown
    shows_speed: bool = False  # whether each update's line shows frames/s
    rates: dict[str, str] = field(default_factory=dict)  # phase -> name of its learning rate; default ``lrate``


class Objective(ABC):
    """A model's training objective: its phases, and a numerator and a count for each loss term.

    Each phase minimizes the sum over terms of weight x (sum of numerators / sum of counts), where both sums run over
    all micro-batches and ranks. Terms without a weight are only logged.
    """

    phases: tuple[Phase, ...]
    log_style: LogStyle
    aligned: Aligned | None = None  # when attention counts as an alignment; None: there is no attention

    def begin_step(self, networks: Networks) -> None:  # noqa: B027 - most models have nothing to do
        """Called once per update, before its phases, for state that advances per update, not per forward pass."""

    def diagnose(self, networks: Networks) -> None:  # noqa: B027 - most models have nothing to say
        """Called after a skipped update; raises InputError if the networks show the cause."""

    @abstractmethod
    def weights(self, phase: str, *, epoch: int) -> dict[str, float]:
        """Return the weight of each term that ``phase`` minimizes in this epoch (from 1)."""

    @abstractmethod
    def counts(self, phase: str, batch: Any) -> dict[str, Tensor]:
        """Return how many elements each term of ``phase`` sums over (scalars), known before the forward pass."""

    @abstractmethod
    def numerators(self, phase: str, networks: Networks, batch: Any) -> dict[str, Tensor]:
        """Run the forward pass of one micro-batch; return the sum of each term of ``counts`` (scalar float32)."""

    def evaluate(self, networks: Networks, batch: Any) -> dict[str, Term]:
        """Return the validation terms of one batch (no gradients); by default, those of the last phase."""
        return self.terms(self.numerators(self.phases[-1].name, networks, batch), batch)

    def terms(self, sums: dict[str, Tensor], batch: Any) -> dict[str, Term]:
        """Combine numerators of the last phase with their counts."""
        counts = self.counts(self.phases[-1].name, batch)
        return {name: Term(total, counts[name]) for name, total in sums.items()}

    def total(self, terms: dict[str, float], *, epoch: int) -> float:
        """Return the figure to log as ``loss``: the weighted sum of all phases' terms."""
        weights: dict[str, float] = {}
        for phase in self.phases:
            weights |= self.weights(phase.name, epoch=epoch)
        return sum(weight * terms[name] for name, weight in weights.items() if name in terms)

    def examples(self, networks: Networks, batch: Any) -> list[Example]:
        """Return a few utterances of a validation batch for plots and audio; none by default."""
        return []


def sound_example(name: str, extractor: MelExtractor, recorded: Tensor, generated: Tensor, **more: Any) -> Example:
    """Make an example of a recording (1, T) and a vocoder's output (1, T or more), with mels and ``more`` fields."""
    waves = {"recorded": recorded, "generated": generated[:, : recorded.size(1)]}
    mels = {label: extractor(wave)[0].float().cpu() for label, wave in waves.items()}
    return Example(name, mels, audio={label: wave[0].float().cpu() for label, wave in waves.items()}, **more)


def text_mel_example(batch: Any, index: int, predicted: Tensor, alignments: Tensor | None, **more: Any) -> Example:
    """Make an example of a `TextMelBatch`, with mels (B, n_mels, F), alignments (B, F, L) and ``more`` fields."""
    n_frames, n_tokens = int(batch.mel_lengths[index]), int(batch.token_lengths[index])
    return Example(
        batch.names[index],
        {"target": cut(batch.mels, index, n_frames), "predicted": cut(predicted, index, n_frames)},
        text=batch.texts[index] if batch.texts else "",
        tokens=batch.tokens[index, :n_tokens].cpu(),
        alignment=None if alignments is None else cut(alignments, index, n_tokens)[:n_frames],
        **more,
    )


def cut(values: Tensor, index: int, n: int) -> Tensor:
    """Return one utterance of ``values`` (B, ..., N) without padding: (..., n) float32 on the CPU."""
    return values[index, ..., :n].float().cpu()
