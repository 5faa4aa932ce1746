"""Times of synthesized batches, and the figures that are logged for a run."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from common.logger import Logger
from common.synthesis.utterances import SynthesisResult

_OTHER_NAME = "mel_gen_frames/s"  # generator_frames/s in HiFi-GAN's published recipe; the JSON log has both


@dataclass(frozen=True)
class BatchTimes:
    """Time and size of one batch; frames, samples and tokens don't count padding."""

    n_utterances: int
    n_tokens: int
    n_frames: int
    n_samples: int
    generator: float  # s; 0: mels were given
    vocoder: float  # s; 0: no sound was made

    @staticmethod
    def of(results: Sequence[SynthesisResult], *, hop_length: int) -> "BatchTimes":
        """Sum up the ``results`` of a batch."""
        n_tokens = sum(len(one.item.tokens) for one in results if one.item.tokens is not None)
        n_frames = sum(one.mel.size(1) for one in results)
        generator = sum(one.generator_seconds for one in results)
        vocoder = sum(one.vocoder_seconds for one in results)
        return BatchTimes(len(results), n_tokens, n_frames, n_frames * hop_length, generator, vocoder)

    @property
    def latency(self) -> float:
        """Seconds from the batch's symbols to its sound."""
        return self.generator + self.vocoder


@dataclass
class Measurements:
    """The times of a run's batches, and the figures that are logged for them.

    docs/INFERENCE.md (Figures) explains each figure of a run; those of a batch have no ``avg_``.
    """

    sampling_rate: int  # Hz
    batch_size: int
    vocoder_name: str  # "" without one
    batches: list[BatchTimes] = field(default_factory=list)

    def figures_of(self, batches: Sequence[BatchTimes]) -> dict[str, float]:
        """Return the throughput and mean latency of each stage, and of both together."""
        figures: dict[str, float] = {}
        for stage, seconds, counts in self._stages(batches):
            figures |= {name: count / sum(seconds) for name, count in counts.items()}
            figures[f"{stage}latency"] = statistics.fmean(seconds)
        if "generator_frames/s" in figures:
            figures[_OTHER_NAME] = figures["generator_frames/s"]
        return figures

    def summary(self) -> dict[str, float]:
        """Return the run's figures for each stage and for both together; empty without batches."""
        figures = {f"avg_{name}": value for name, value in self.figures_of(self.batches).items()}
        for stage, seconds, _ in self._stages(self.batches):
            mean, deviation = statistics.fmean(seconds), statistics.pstdev(seconds)
            for percent in (90, 95, 99):  # the upper end of the normal distribution's central interval
                width = statistics.NormalDist().inv_cdf(0.5 + percent / 200)
                figures[f"{percent}%_{stage}latency"] = mean + width * deviation
            n_utterances = sum(batch.n_utterances for batch in self.batches)
            figures[f"avg_{stage}RTF"] = self._speech_seconds / (n_utterances * mean)
            figures[f"avg_{stage}RTF@{self.batch_size}"] = self._speech_seconds / sum(seconds)
        return figures

    @property
    def _speech_seconds(self) -> float:
        return sum(batch.n_samples for batch in self.batches) / self.sampling_rate

    def _stages(self, batches: Sequence[BatchTimes]) -> Iterator[tuple[str, list[float], dict[str, int]]]:
        """Yield each stage that ran, and both together as "", with its batches' seconds and its counts by figure."""
        names = ("n_tokens", "n_frames", "n_samples")
        tokens, frames, samples = (sum(getattr(batch, name) for batch in batches) for name in names)
        generator = [batch.generator for batch in batches if batch.generator]
        vocoder = [batch.vocoder for batch in batches if batch.vocoder]
        name = f"{self.vocoder_name}_"
        if generator:
            yield "generator_", generator, {"generator_tokens/s": tokens, "generator_frames/s": frames}
        if vocoder:
            yield name, vocoder, {f"{name}frames/s": frames, f"{name}samples/s": samples}
        if generator and vocoder:
            yield "", [batch.latency for batch in batches], {"samples/s": samples, "letters/s": tokens}

    def total(self) -> str:
        """Return one line with the length of the speech, the work and their ratio; empty without batches."""
        speech, work = self._speech_seconds, sum(batch.latency for batch in self.batches)
        if not work:
            return ""
        rtf = f"RTF {work / speech:.4f} (work / speech), {speech / work:.2f} x real time"
        return f"{speech:.2f} s of speech in {work:.2f} s of work: {rtf}"

    def log_summary(self, logger: Logger) -> None:
        """Log the run's figures, one per line."""
        for name, value in self.summary().items():
            # On the terminal, RTF is work / speech, as usual; the log's figures of this name are the inverse.
            title = name.replace("_", " ").replace("RTF", "speed in real time")
            is_time = name.endswith("latency")
            unit = "s" if is_time else "x" if "RTF" in name else name.rpartition("_")[2]
            if not name.endswith(_OTHER_NAME):
                logger.metadata(name, name=f"{title: <26}", format="{:>10.5f}" if is_time else "{:>10.2f}", unit=unit)
            logger.log((), {name: value}, stdout=name in logger.metrics)
