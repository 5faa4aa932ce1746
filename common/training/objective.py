"""The contract between a model's losses and the engine that trains it."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from common.audio.mel import MelExtractor
from common.config import AudioConfig
from common.data.batch import Batch
from common.training.verdict import Aligned

Networks = dict[str, Any]  # modules of the classes that the model's package builds
_N_EXAMPLES = 2


@dataclass(frozen=True)
class Phase:
    """A part of an update, which ends with a step of its optimizer."""

    name: str
    trains: tuple[str, ...]  # names of the networks it updates; all others are frozen meanwhile
    # Networks that are not frozen either, since the next phase backpropagates through their outputs of this one: the
    # graph of the last micro-batch is kept, and the engine gives the next phase its micro-batches in reverse order.
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
    mel_config: AudioConfig | None = None  # of the mels, where it is not the run's
    text: str = ""
    tokens: Tensor | None = None  # (L,) int64 symbol ids
    durations: Tensor | None = None  # (L,) frames
    alignment: Tensor | None = None  # (F, L) attention's weights of each frame
    pitch: dict[str, Tensor] = field(default_factory=dict)  # title -> (F,) Hz, 0 where unvoiced
    curves: dict[str, dict[str, Tensor]] = field(default_factory=dict)  # name with its unit -> title -> (F,)
    audio: dict[str, Tensor] = field(default_factory=dict)  # title -> (T,) in [-1, 1]
    texts: dict[str, str] = field(default_factory=dict)  # title -> what was said; also shown on stdout


@dataclass(frozen=True)
class LogStyle:
    """How a model's figures are printed on stdout."""

    terms: dict[str, str]  # terms to show, in order, and what they are called there
    format: str = "{:>5.2f}"
    shows_total: bool = True  # whether ``loss``, the weighted sum of all terms, is shown
    shows_speed: bool = False  # whether each update's line shows frames/s
    rates: dict[str, str] = field(default_factory=dict)  # phase -> name of its learning rate; else ``lrate``


class Objective(ABC):
    """What a model trains for: its phases, and for each loss term a numerator and its count.

    In each phase a step minimizes the sum over terms of weight x (sum of numerators / sum of counts), where both sums
    run over all micro-batches and ranks. Terms without a weight are only logged.
    """

    phases: tuple[Phase, ...]
    log_style: LogStyle
    aligned: Aligned | None = None  # what attention has reached that reads its text; None: there is no attention

    def begin_step(self, networks: Networks) -> None:  # noqa: B027 - most models have nothing to do
        """Called once an update, before its phases; for what advances by updates and not by forward passes."""

    def diagnose(self, networks: Networks) -> None:  # noqa: B027 - most models have nothing to say
        """Called after an update that was skipped: raise InputError where the networks show why."""

    @abstractmethod
    def weights(self, phase: str, *, epoch: int) -> dict[str, float]:
        """The weight of each term that phase ``phase`` minimizes in this epoch (from 1)."""

    @abstractmethod
    def counts(self, phase: str, batch: Any) -> dict[str, Tensor]:
        """Elements that each term of ``phase`` is summed over, scalar tensors, known before the forward pass."""

    @abstractmethod
    def numerators(self, phase: str, networks: Networks, batch: Any) -> dict[str, Tensor]:
        """Forward pass of one micro-batch: for each term of ``counts`` its sum (scalar float32 tensors)."""

    def evaluate(self, networks: Networks, batch: Any) -> dict[str, Term]:
        """Validation terms of one batch (no gradients); by default those of the only phase."""
        return self.terms(self.numerators(self.phases[-1].name, networks, batch), batch)

    def terms(self, sums: dict[str, Tensor], batch: Any) -> dict[str, Term]:
        """Numerators of the last phase with their counts."""
        counts = self.counts(self.phases[-1].name, batch)
        return {name: Term(total, counts[name]) for name, total in sums.items()}

    def total(self, terms: dict[str, float], *, epoch: int) -> float:
        """The one figure to log as ``loss``: all phases' weighted terms together."""
        weights: dict[str, float] = {}
        for phase in self.phases:
            weights |= self.weights(phase.name, epoch=epoch)
        return sum(weight * terms[name] for name, weight in weights.items() if name in terms)

    def examples(self, networks: Networks, batch: Any) -> list[Example]:
        """A few utterances of a validation batch for plots and audio; none by default."""
        return []


def example_indices(batch: Batch) -> range:
    """Indices of the utterances of a validation batch that become its examples."""
    return range(min(_N_EXAMPLES, len(batch.names)))


def sound_example(name: str, extractor: MelExtractor, recorded: Tensor, generated: Tensor, **more: Any) -> Example:
    """An utterance (1, T) and a vocoder's sound in its place (1, T or more), with their mels; ``more`` fields."""
    waves = {"recorded": recorded, "generated": generated[:, : recorded.size(1)]}
    mels = {label: extractor(wave)[0].float().cpu() for label, wave in waves.items()}
    return Example(name, mels, audio={label: wave[0].float().cpu() for label, wave in waves.items()}, **more)


def text_mel_example(batch: Any, index: int, predicted: Tensor, alignments: Tensor | None, **more: Any) -> Example:
    """An utterance of a `TextMelBatch` with mels (B, n_mels, F) and alignments (B, F, L); ``more`` fields."""
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
    """Take an utterance of ``values`` (B, ..., N) without padding: (..., n) float32 on the CPU."""
    return values[index, ..., :n].float().cpu()
