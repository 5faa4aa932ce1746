"""What a training run reports: figures on stdout and in the JSON log, curves, plots and sound in TensorBoard."""

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import torch

from common.audio.griffin_lim import griffin_lim
from common.config import AudioConfig, TextConfig
from common.errors import InputError, OutputError
from common.logger import Logger
from common.progress import print_line
from common.text import TextFrontEnd
from common.training.objective import Example, Objective
from common.training.step_result import StepResult
from common.training.tensorboard import TensorBoardLogs

_GRIFFIN_LIM_ITERATIONS = 16  # a rough sound is enough to monitor training


class Reporter:
    """Reports what the trainer measures; ``board`` is enabled on the main process alone, as is ``logger``."""

    def __init__(
        self,
        logger: Logger,
        board: TensorBoardLogs,
        objective: Objective,
        audio: AudioConfig,
        text: TextConfig | None = None,
    ) -> None:
        self._logger = logger
        self._board = board
        self._objective = objective
        self._audio = audio
        self._symbols = [] if text is None or text.input_type == "pf" else TextFrontEnd(text).symbols
        self._plot_executor = ThreadPoolExecutor(max_workers=1)
        self._pending_plots: list[Future] = []
        # Why a log, or standard output, cannot be written: training stops then, with all that it has learned.
        self.failure: OutputError | None = None
        self._describe_metrics()

    @contextmanager
    def _logging(self) -> Iterator[None]:
        """Keep the first failure of a log, for the trainer to stop at the next update with a checkpoint."""
        try:
            yield
        except OutputError as error:
            self.failure = self.failure or error

    def log(
        self,
        step: tuple[int, ...],
        subset: str,
        figures: dict[str, float],
        *,
        iteration: int | None = None,
        stdout: bool = True,
    ) -> None:
        """Log figures of a subset, and add them to its curves at ``iteration`` where that is given.

        Figures without a description go to the JSON stream only.
        """
        named = {f"{subset}_{name}": value for name, value in figures.items()}
        with self._logging():
            for name in named:
                if name not in self._logger.metrics:
                    self._logger.metadata(name, name=name, shown=False)
            self._logger.log(step, named, stdout=stdout)
        if iteration is not None:
            self._add_scalars(subset, iteration, figures)

    def update(self, step: tuple[int, ...], result: StepResult, *, loss: float, seconds: float) -> None:
        """Log one update, whose total loss and time are given; a terminal has a progress bar instead of its line."""
        style, phases = self._objective.log_style, [phase.name for phase in self._objective.phases]
        rates = {f"lrate{self._suffix(name)}": result.learning_rate for name in style.rates or phases}
        speed = {"frames/s": result.n_frames / seconds, "took": seconds}
        figures = {"loss": loss} | result.terms | (speed | rates if style.shows_speed else rates | speed)
        self.log(step, "train", figures, stdout=not has_terminal())
        norms = {f"grad_norm{self._suffix(name)}": norm for name, norm in result.grad_norms.items()}
        self._add_scalars("train", result.iteration, figures | norms)
        if result.skipped and self._board.enabled:
            phases_skipped = ", ".join(result.skipped)
            with self._logging():
                print_line(
                    f"warning: update {result.iteration} skipped ({phases_skipped}): loss or gradient not finite"
                )

    def examples(self, subset: str, examples: Sequence[Example], *, iteration: int) -> None:
        """Print the examples' texts and add their plots and sound to TensorBoard, while training continues."""
        for example in examples:
            for title, text in example.texts.items():
                with self._logging():
                    print_line(f"{subset} {example.name} {title}: {text}")
        self.wait_for_plots()
        self._pending_plots.append(self._plot_executor.submit(self._plot, subset, iteration, list(examples)))

    def wait_for_plots(self) -> None:
        """Wait for the plots and sound of the last examples; re-raises their errors but those of writing."""
        while self._pending_plots:
            with self._logging():
                self._pending_plots.pop().result()

    def close(self) -> None:
        """Finish plots and close the TensorBoard files."""
        self._plot_executor.shutdown()
        with self._logging():
            self._board.close()

    def _add_scalars(self, subset: str, iteration: int, figures: dict[str, float]) -> None:
        with self._logging():
            self._board.scalars(subset, iteration, figures)

    def _plot(self, subset: str, iteration: int, examples: list[Example]) -> None:
        for example in examples:
            for title, mel in example.mels.items():
                if not torch.isfinite(mel).all():
                    raise InputError(
                        f"{subset} {example.name}: its {title} mel-spectrogram is not finite after update {iteration}; "
                        "resume from an earlier --checkpoint-path with a lower --learning-rate"
                    )
        sounding = [_with_sound(example, self._audio) for example in examples]
        self._board.examples(subset, iteration, sounding, audio=self._audio, symbols=self._symbols)

    def _suffix(self, phase: str) -> str:
        """Figures of a model with one phase need no phase in their name."""
        return "" if len(self._objective.phases) == 1 else f"_{phase}"

    def _describe_metrics(self) -> None:
        """Tell the logger how to print each figure of training on stdout; the JSON stream holds more."""
        style, logger = self._objective.log_style, self._logger
        shown = ({"loss": "loss"} if style.shows_total else {}) | style.terms
        for subset, title in (("train", ""), ("avg_train", "avg train"), ("val", "val"), ("val_ema", "val ema")):
            for name, text in shown.items():
                logger.metadata(f"{subset}_{name}", name=f"{title} {text}".strip(), format=style.format)
            logger.metadata(f"{subset}_took", name="took", format="{:.2f}", unit="s")
            logger.metadata(f"{subset}_skipped", name="skipped", format="{}")
            speed = style.shows_speed or subset != "train"
            logger.metadata(f"{subset}_frames/s", name="", format="{:.2f}", unit="frames/s", shown=speed)
            for phase in self._objective.phases:
                name = style.rates.get(phase.name, "lrate")
                logger.metadata(f"{subset}_lrate{self._suffix(phase.name)}", name=name, format="{:.2e}")


def has_terminal() -> bool:
    """Whether a terminal shows the run's progress bar."""
    return sys.stdout.isatty() and sys.stderr.isatty()


def _with_sound(example: Example, audio: AudioConfig) -> Example:
    """The example with the sound of its mels, where the model gave none."""
    if example.audio:
        return example
    sounds = {
        title: griffin_lim(mel.float().cpu(), audio, n_iter=_GRIFFIN_LIM_ITERATIONS)
        for title, mel in example.mels.items()
    }
    return replace(example, audio=sounds)
