"""Reports of a training run: figures on stdout and in the JSON log, curves, plots and sound in TensorBoard."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch

from common.audio.mel import griffin_lim
from common.checkpoints.checkpoint import Checkpoint
from common.errors import InputError
from common.files import writing
from common.logger import Logger, Step
from common.progress import print_line
from common.text.front_end import TextFrontEnd
from common.training.engine import StepResult
from common.training.objective import Example, Objective

_GRIFFIN_LIM_ITERATIONS = 16  # rough audio is enough to monitor training
FLUSH_SECONDS = 30  # a kill can lose this much of the curves, but nothing of the JSON log


class Reporter:
    """Logs what the trainer measures; ``is_main`` is True in the process whose ``logger`` is enabled."""

    def __init__(
        self, logger: Logger, folder: Path, objective: Objective, template: Checkpoint, *, is_main: bool
    ) -> None:
        """``template`` is the run's checkpoint without weights."""
        text = template.text
        self._logger = logger
        self._folder = folder
        self._objective = objective
        self._audio = template.audio
        self._symbols = [] if text is None or text.input_type == "pf" else TextFrontEnd(text).symbols
        self._is_main = is_main
        self._writers: dict[str, Any] = {}  # SummaryWriter of each subset
        self._plot_executor = ThreadPoolExecutor(max_workers=1)
        self._plots: Future | None = None  # of the last examples
        self._describe_metrics()

    def log(
        self, step: Step, subset: str, figures: dict[str, float], *, iteration: int | None = None, stdout: bool = True
    ) -> None:
        """Log a subset's figures; with ``iteration``, also add them to TensorBoard's curves."""
        named = {f"{subset}_{name}": value for name, value in figures.items()}
        self._logger.log(step, named, stdout=stdout)
        if iteration is not None:
            self._add_scalars(subset, iteration, figures)

    def update(self, step: Step, result: StepResult, *, loss: float, seconds: float) -> None:
        """Log one update with its total loss and time; on a terminal, the progress bar replaces the printed line."""
        style, phases = self._objective.log_style, [phase.name for phase in self._objective.phases]
        rates = {f"lrate{self._suffix(name)}": result.learning_rate for name in style.rates or phases}
        speed = {"frames/s": result.n_frames / seconds, "took": seconds}
        figures = {"loss": loss} | result.terms | (speed | rates if style.shows_speed else rates | speed)
        self.log(step, "train", figures, stdout=not has_terminal())
        norms = {f"grad_norm{self._suffix(name)}": norm for name, norm in result.grad_norms.items()}
        self._add_scalars("train", result.iteration, figures | norms)
        if result.skipped:
            skipped = f"update {result.iteration} skipped ({', '.join(result.skipped)})"
            print_once(f"warning: {skipped}: loss or gradient not finite")

    def examples(self, subset: str, examples: Sequence[Example], *, iteration: int) -> None:
        """Print the examples' texts and add their plots and audio to TensorBoard while training continues."""
        for example in examples:
            print_once(*(f"{subset} {example.name} {title}: {text}" for title, text in example.texts.items()))
        self.wait_for_plots()
        self._plots = self._plot_executor.submit(self._plot, subset, iteration, list(examples))

    def wait_for_plots(self) -> None:
        """Wait for the plots and audio of the last examples, and raise their errors."""
        if self._plots is not None:
            self._plots.result()
            self._plots = None

    def close(self) -> None:
        """Finish plots and close the TensorBoard files."""
        self._plot_executor.shutdown()
        for subset in self._writers:
            with self._writing(subset) as writer:
                writer.close()

    @contextmanager
    def _writing(self, subset: str) -> Iterator[Any]:
        with writing(self._folder / subset, "; it holds TensorBoard's files"):
            if subset not in self._writers:
                from torch.utils.tensorboard import SummaryWriter  # slow to import, and needed on one rank only

                self._writers[subset] = SummaryWriter(str(self._folder / subset), flush_secs=FLUSH_SECONDS)
            yield self._writers[subset]

    def _add_scalars(self, subset: str, iteration: int, figures: dict[str, float]) -> None:
        """Add a point to each of a subset's curves at ``iteration`` (updates since the start)."""
        if self._is_main:
            with self._writing(subset) as writer:
                for name, value in figures.items():
                    writer.add_scalar(name, value, iteration)

    def _plot(self, subset: str, iteration: int, examples: list[Example]) -> None:
        for example in examples:
            if not all(torch.isfinite(mel).all() for mel in example.mels.values()):
                what = f"{subset} {example.name}: its mel-spectrogram is not finite after update {iteration}"
                raise InputError(f"{what}; resume from an earlier --checkpoint-path with a lower --learning-rate")
            name = example.name.rpartition(" (")[0] or example.name  # wavs/a b.wav (list.txt:7) -> wavs/a b.wav
            tag = re.sub(r"[^\w.-]+", "_", re.sub(r"\.\w+$", "", name))  # wavs_a_b: one entry for all validations
            picture = self._picture(example, title=": ".join(filter(None, [name, example.text])))
            invert = partial(griffin_lim, config=self._audio, n_iter=_GRIFFIN_LIM_ITERATIONS)
            sounds = example.audio or {title: invert(mel.float().cpu()) for title, mel in example.mels.items()}
            with self._writing(subset) as writer:
                writer.add_image(f"utterance/{tag}", picture, iteration, dataformats="HWC")
                for title, wave in sounds.items():
                    # An untrained model's output can exceed [-1, 1] or be NaN.
                    playable = wave.detach().float().cpu().nan_to_num(0.0).clamp(-1.0, 1.0)[None]
                    writer.add_audio(f"audio_{title}/{tag}", playable, iteration, sample_rate=self._audio.sampling_rate)
                for title, text in example.texts.items():
                    writer.add_text(f"text_{title}/{tag}", text, iteration)
                writer.flush()

    def _picture(self, example: Example, *, title: str) -> Any:
        """Plot an utterance on one time axis; return an array (height, width, 3)."""
        from common import plots  # matplotlib takes half a second to import, and other ranks never draw

        tokens = example.tokens  # phonological features aren't symbols
        ids = tokens.tolist() if self._symbols and tokens is not None and tokens.dim() == 1 else []
        figure = plots.plot_utterance(
            example.mels,
            audio=example.mel_config or self._audio,
            title=title,
            symbols=[self._symbols[index] for index in ids],
            durations=example.durations,
            alignment=example.alignment,
            curves={plots.PITCH: example.pitch} | example.curves,
        )
        return plots.to_image(figure)

    def _suffix(self, phase: str) -> str:
        """Return the suffix for a phase's figures; a model with one phase needs none."""
        return "" if len(self._objective.phases) == 1 else f"_{phase}"

    def _describe_metrics(self) -> None:
        """Tell the logger how to print each figure on stdout."""
        style, logger = self._objective.log_style, self._logger
        shown = ({"loss": "loss"} if style.shows_total else {}) | style.terms
        for subset, title in (("train", ""), ("avg_train", "avg train"), ("val", "val"), ("val_ema", "val ema")):
            for name, text in shown.items():
                logger.metadata(f"{subset}_{name}", name=f"{title} {text}".strip(), format=style.format)
            logger.metadata(f"{subset}_took", name="took", format="{:.2f}", unit="s")
            logger.metadata(f"{subset}_skipped", name="skipped", format="{}")
            if style.shows_speed or subset != "train":
                logger.metadata(f"{subset}_frames/s", name="", format="{:.2f}", unit="frames/s")
            for phase in self._objective.phases:
                name = style.rates.get(phase.name, "lrate")
                logger.metadata(f"{subset}_lrate{self._suffix(phase.name)}", name=name, format="{:.2e}")


def print_once(*lines: str) -> None:
    """Print lines on stdout, in the first process only."""
    for line in lines if os.environ.get("RANK", "0") == "0" else ():
        print_line(line)


def has_terminal() -> bool:
    """Whether a terminal shows the run's progress bar."""
    return sys.stdout.isatty() and sys.stderr.isatty()
