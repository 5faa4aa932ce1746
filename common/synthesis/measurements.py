"""Latency and throughput of inference: stage times around device synchronisation, and what they come to."""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from torch import Tensor

from common.logger import Logger

# Half-widths of the normal distribution's central intervals, in standard deviations.
NORMAL_INTERVALS = {"90%": 1.6448536269514722, "95%": 1.959963984540054, "99%": 2.5758293035489004}

_OTHER_NAME = "mel_gen_frames/s"  # of generator_frames/s in HiFi-GAN's published recipe; the JSON stream has both


@dataclass(frozen=True)
class FirstSound:
    """How soon speech begins that is streamed; medians over turns."""

    seconds: float  # until the first piece
    share: float  # of the time for all of it at once, in the same turn: a load on the machine slows both
    whole: float  # s, for all of it at once
    streamed: float  # s, until the last piece


def first_sound(stream: Callable[[], Iterator[Tensor]], speak: Callable[[], object], *, turns: int = 3) -> FirstSound:
    """Time ``stream()`` and ``speak()`` by turns, after one turn that does not count.

    Both begin with the same text or mel, and their sound lies on the CPU, so that work on a device is done.
    """
    found = []
    for _ in range(1 + turns):
        started = time.perf_counter()
        speak()
        whole = time.perf_counter() - started
        started = time.perf_counter()
        times = [time.perf_counter() - started for _ in stream()]
        found.append((times[0], times[0] / whole, whole, times[-1]))
    return FirstSound(*map(statistics.median, zip(*found[1:])))


@dataclass(frozen=True)
class BatchTimes:
    """What one batch took and gave; frames, samples and tokens are valid ones, without padding."""

    n_utterances: int
    n_tokens: int
    n_frames: int
    n_samples: int
    generator: float | None  # s; None: mels were given
    vocoder: float | None  # s; None: no sound was made

    @property
    def latency(self) -> float:
        """Seconds from the batch's symbols to its sound."""
        return (self.generator or 0.0) + (self.vocoder or 0.0)


@dataclass
class Measurements:
    """The times of a run's batches, and the figures that are logged of them.

    docs/INFERENCE.md (Figures) says what each figure of the run means; those of a batch have no ``avg_``.
    """

    sampling_rate: int  # Hz
    batch_size: int
    vocoder_name: str
    batches: list[BatchTimes] = field(default_factory=list)
    first_sound: FirstSound | None = None

    def figures_of(self, batches: Sequence[BatchTimes]) -> dict[str, float]:
        """Throughput and mean latency of each stage, and of both together."""
        figures: dict[str, float] = {}
        for stage, seconds, counts in self._stages(batches):
            figures |= {name: count / sum(seconds) for name, count in counts.items()}
            figures[f"{stage}latency"] = statistics.fmean(seconds)
        if "generator_frames/s" in figures:
            figures[_OTHER_NAME] = figures["generator_frames/s"]
        return figures

    def summary(self) -> dict[str, float]:
        """The run's figures: of each stage, and of both together; empty without batches."""
        figures = {f"avg_{name}": value for name, value in self.figures_of(self.batches).items()}
        speech = sum(batch.n_samples for batch in self.batches) / self.sampling_rate  # s
        utterances = sum(batch.n_utterances for batch in self.batches)
        for stage, seconds, _ in self._stages(self.batches):
            mean, deviation = statistics.fmean(seconds), statistics.pstdev(seconds)
            figures |= {f"{name}_{stage}latency": mean + width * deviation for name, width in NORMAL_INTERVALS.items()}
            figures[f"avg_{stage}RTF"] = speech / (utterances * mean)
            figures[f"avg_{stage}RTF@{self.batch_size}"] = speech / (len(self.batches) * mean)
        if self.first_sound is not None:
            figures |= {"first_sound": self.first_sound.seconds, "first_sound_share": self.first_sound.share}
        return figures

    def _stages(self, batches: Sequence[BatchTimes]) -> Iterator[tuple[str, list[float], dict[str, int]]]:
        """Each stage that ran, and both together under "": its batches' seconds, and what was made, by figure."""
        tokens, frames, samples = (
            sum(getattr(batch, name) for batch in batches) for name in ("n_tokens", "n_frames", "n_samples")
        )
        generator = [batch.generator for batch in batches if batch.generator is not None]
        vocoder = [batch.vocoder for batch in batches if batch.vocoder is not None]
        name = f"{self.vocoder_name}_"
        if generator:
            yield "generator_", generator, {"generator_tokens/s": tokens, "generator_frames/s": frames}
        if vocoder:
            yield name, vocoder, {f"{name}frames/s": frames, f"{name}samples/s": samples}
        if generator and vocoder:
            yield "", [batch.latency for batch in batches], {"samples/s": samples, "letters/s": tokens}

    def total(self) -> str:
        """Speech and work of all batches, and how they compare, in one line; empty without batches."""
        speech = sum(batch.n_samples for batch in self.batches) / self.sampling_rate  # s
        work = sum(batch.latency for batch in self.batches)  # s
        if not work:
            return ""
        return (
            f"{speech:.2f} s of speech in {work:.2f} s of work: RTF {work / speech:.4f} (work / speech), "
            f"{speech / work:.2f} x real time"
        )

    def log_summary(self, logger: Logger) -> None:
        """Log the run's figures, one a line."""
        for name, value in self.summary().items():
            # On the terminal RTF is work by speech, as in the field; the log's figures of this name are the inverse.
            title = name.replace("_", " ").replace("RTF", "speed in real time")
            form, unit = unit_of(name)
            is_shown = not name.endswith(_OTHER_NAME)
            logger.metadata(name, name=f"{title: <26}", format=form, unit=unit, shown=is_shown)
            logger.log((), {name: value}, stdout=is_shown)


def unit_of(figure: str) -> tuple[str, str]:
    """How a figure is shown: its format and its unit, ``("{:>10.5f}", "s")`` for ``95%_latency``."""
    if figure.endswith("latency") or figure == "first_sound":
        return "{:>10.5f}", "s"
    if figure.endswith("share"):
        return "{:>10.4f}", ""
    if "RTF" in figure:
        return "{:>10.2f}", "x"
    return "{:>10.2f}", figure.rpartition("_")[2]
