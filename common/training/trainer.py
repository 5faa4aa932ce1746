"""The training loop of every model: epochs, validation, logs, checkpoints, exact resume, and stopping in between."""

import itertools
import math
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import torch

from common.checkpoints.checkpoint import (
    Checkpoint,
    checkpoint_path,
    epoch_of,
    is_rolling,
    save_checkpoint,
    saved_checkpoints,
    strip_checkpoint,
)
from common.checkpoints.loading import load_weights
from common.data.batch import Batch, Dataset
from common.data.buckets import AxisSizes
from common.data.loader import batches_of, build_loader
from common.data.sampler import GlobalBatchSampler, validation_batches
from common.distributed import Ranks
from common.errors import OutputError
from common.files import writing
from common.logger import Logger
from common.progress import Progress, print_line, progress
from common.signals import StopSignals
from common.training.engine import Engine, StepResult, evaluation_mode
from common.training.memory import memory_errors_explained, remembered
from common.training.misfits import measure_misfits, report_misfits
from common.training.objective import Networks
from common.training.options import RunOptions, inference_paths
from common.training.position import Position, resumed_position
from common.training.reporter import Reporter, has_terminal
from common.training.verdict import describe_training


class Trainer:
    """Runs an engine over datasets until the last epoch, or until it is asked to stop."""

    def __init__(
        self,
        engine: Engine,
        *,
        template: Checkpoint,
        training_set: Dataset,
        validation_set: Dataset,
        shapes: Sequence[AxisSizes],
        ranks: Ranks,
        options: RunOptions,
        logger: Logger,
        lock: TextIO | None = None,
    ) -> None:
        """``template`` is a checkpoint of this run without weights; batches are padded to ``shapes``, if any.

        ``lock`` is that of the output, which is held as long as the trainer.
        """
        self.engine = engine
        self._lock = lock
        self._template = template
        self._ranks = ranks
        self._options = options
        self._position = Position()
        self._stopping = False
        self._is_due = False  # whether the clock has asked for a checkpoint
        self._saved_at = time.monotonic()
        self._reported_at = 0.0
        self._best: dict[str, Any] | None = None  # epoch and metric of the best validation of a checkpoint
        self._history: list[dict[str, float]] = []  # of validations, as `describe_training` takes it
        self._training_set = training_set
        pieces = options.length_pieces or 1
        self._micro_batches = options.gradient_accumulation_steps * pieces
        self._sampler = GlobalBatchSampler(
            training_set.lengths,
            batch_size=options.batch_size // pieces,
            accumulation=self._micro_batches,
            seed=options.seed,
            ranks=ranks,
            sorted_updates=options.sorted_updates,
        )
        validation = validation_batches(validation_set.lengths, batch_size=options.batch_size, ranks=ranks)
        load = partial(
            build_loader,
            n_workers=options.num_workers or 0,
            pin_memory=ranks.device.type == "cuda",
            seed=options.seed,
            shapes=shapes,
        )
        self._training_loader = load(training_set, self._sampler)
        self._validation_loader = load(validation_set, validation)
        self._validated = {"val": engine.networks}  # subset of the log -> networks
        if engine.ema is not None:
            self._validated["val_ema"] = engine.networks | engine.ema.networks
        self._reporter = Reporter(
            logger, options.output, engine.objective, template.audio, template.text, is_main=ranks.is_main
        )

    def resume(self, checkpoint: Checkpoint, *, where: Path) -> list[str]:
        """Continue where ``checkpoint``, which has a training state, was saved; the weights are loaded already.

        Returns lines on what cannot go on as it was. CheckpointError where the state does not fit.
        """
        state = checkpoint.training
        assert state is not None
        notes = self.engine.load_state(state, where=str(where))
        if self.engine.ema is not None and checkpoint.ema is not None:
            load_weights(self.engine.ema.networks, checkpoint.ema, where=str(where), kind="EMA weights")
        elif self.engine.ema is not None:
            notes.append(f"{where} holds no EMA weights: they begin as a copy of its weights")
        elif checkpoint.ema is not None:
            notes.append(f"the EMA weights of {where} are left out, as --ema-decay is 0")
        self._position, n = resumed_position(state, self._sampler), self._ranks.world_size
        best, options = state.get("best"), self._options
        if best is not None and str(options.keep_best) in best:  # else of another metric
            path = checkpoint_path(options.output, self._template.model, epoch=best["epoch"])
            self._best = best if path.is_file() else None
        self._history = list(state.get("history", []))
        random_states = state.get("random", [])
        if len(random_states) == n:
            _set_random_state(random_states[self._ranks.rank], self._ranks.device)
        elif state.get("steps_done") is not None:
            notes.append(f"{where} holds random states of {len(random_states)} processes, not {n}: they begin anew")
        return notes

    def fit(self) -> signal.Signals | None:
        """Train until the last epoch; returns the signal that asked to stop before it, with a checkpoint saved.

        Another process's signal stops this one as SIGTERM.
        """
        position, options = self._position, self._options
        last_epoch = options.epochs
        if options.epochs_this_job:
            last_epoch = min(last_epoch, position.epoch - 1 + options.epochs_this_job)
        if position.epoch > last_epoch and self._ranks.is_main:
            print_line(f"nothing to train: {position.epoch - 1} epochs are done, --epochs is {options.epochs}")
        total = last_epoch * self._sampler.steps_per_epoch
        self._saved_at = time.monotonic()
        for unfinished in options.output.glob(f".{self._template.model}_*.tmp") if self._ranks.is_main else ():
            unfinished.unlink(missing_ok=True)  # a killed run was writing it
        stopped_by = None
        try:
            shown = self._ranks.is_main and has_terminal()
            bar: Progress[None] = progress(total=total, desc="training", unit="step", enabled=shown)
            with StopSignals() as signals, bar:
                bar.update((position.epoch - 1) * self._sampler.steps_per_epoch + position.steps_done)
                while position.epoch <= last_epoch and stopped_by is None:
                    self._train_epoch(bar, signals)
                    is_last = position.epoch == last_epoch
                    if is_finished := position.steps_done == self._sampler.steps_per_epoch:
                        self._finish_epoch(is_last=is_last)
                    else:
                        self._save(rolling=True)
                    if self._stopping and not (is_finished and is_last):
                        stopped_by = signals.received or signal.SIGTERM
                    self._position = position = Position(epoch=position.epoch + 1)
            self._reporter.wait_for_plots()
        finally:
            self._reporter.close()
        if (failure := self._reporter.failure) is not None:
            raise OutputError(f"{failure}; {self._how_to_resume()}")
        if position.epoch > options.epochs and not self._stopping:
            self._list_misfits()  # all is saved: what ends this ends no training
        return stopped_by

    def _list_misfits(self) -> None:
        """List the transcripts of training by how badly they fit, if networks (those of inference) can say it."""
        options, networks = self._options, [*self._validated.values()][-1]
        score = self.engine.objective.misfits(networks)
        if score is None:
            return
        with evaluation_mode(networks):
            fits = measure_misfits(score, self._training_set, ranks=self._ranks, batch_size=options.batch_size)
        if self._ranks.is_main:
            report_misfits(fits, output=options.output)

    def _how_to_resume(self) -> str:
        """What is saved, for whoever cannot write something, as on a full disk."""
        saved = saved_checkpoints(self._options.output, self._template.model)
        return f"the last checkpoint is {saved[-1]}: add --resume to continue from it" if saved else "nothing is saved"

    def _train_epoch(self, bar: Progress, signals: StopSignals) -> None:
        """Train to the end of the current epoch, or until any process is asked to stop."""
        position, options = self._position, self._options
        self._sampler.set_position(epoch=position.epoch, step=position.steps_done)
        self._reported_at = time.perf_counter()
        for micro_batches in self.updates():
            stops = signals.received is not None or self._reporter.failure is not None
            saves = self._ranks.is_main and self._clock_asks()
            given = {"epoch": position.epoch, "steps_per_epoch": self._sampler.steps_per_epoch}
            with memory_errors_explained(micro_batches, run=options, audio=self._template.audio):
                result = self.engine.step(micro_batches, **given, stop=stops, save=saves)
            position.steps_done += 1
            self._report(result, bar)
            is_last = position.steps_done == self._sampler.steps_per_epoch
            validates = self._is_multiple_of(options.validation_steps)
            saves = self._is_multiple_of(options.steps_per_checkpoint)
            if is_last or self._stopping:
                return
            if validates:
                self._validate((position.epoch, position.steps_done, self._sampler.steps_per_epoch))
            if saves := saves or self._is_due:
                self._save(rolling=True)
            if validates or saves:
                self._reported_at = time.perf_counter()  # neither is part of the next update

    def updates(self) -> Iterator[list[Batch]]:
        """This process's micro-batches of one update after another, on the device."""
        size, batches = self._micro_batches, batches_of(self._training_loader)
        while len(group := list(itertools.islice(batches, size))) == size:
            yield [batch.to(self._ranks.device) for batch in group]

    def _report(self, result: StepResult, bar: Progress) -> None:
        """Log an update."""
        position, now = self._position, time.perf_counter()
        loss = self.engine.objective.total(result.terms, epoch=position.epoch)
        position.add(result, loss, now - self._reported_at)
        step = (position.epoch, position.steps_done, self._sampler.steps_per_epoch)
        self._reporter.update(step, result, loss=loss, seconds=now - self._reported_at)
        self._reported_at = now
        bar.set_postfix(epoch=position.epoch, loss=f"{loss:.3f}", refresh=False)
        bar.update()
        self._stopping |= result.stops
        self._is_due |= result.saves
        self.engine.finish(result)

    def _is_multiple_of(self, n_steps: int) -> bool:
        return n_steps > 0 and self.engine.iteration % n_steps == 0

    def _clock_asks(self) -> bool:
        seconds = 60 * self._options.minutes_per_checkpoint
        return seconds > 0 and time.monotonic() - self._saved_at >= seconds

    def _finish_epoch(self, *, is_last: bool) -> None:
        position, options = self._position, self._options
        self._log_epoch()
        validates = is_last or position.epoch % options.validation_interval == 0
        validates = validates or self._is_multiple_of(options.validation_steps)
        shows = is_last or position.epoch % (options.samples_interval or options.validation_interval) == 0
        figures = self._validate((position.epoch,)) if validates else {}
        for subset, networks in self._validated.items() if shows and self._ranks.is_main else ():
            self._show_examples(networks, subset)
        if is_last or self._stopping or position.epoch % options.epochs_per_checkpoint == 0:
            self._save(rolling=False, figures=figures)
        elif self._is_due:
            self._save(rolling=True)

    def _log_epoch(self) -> None:
        position = self._position
        figures = {"loss": math.nan} | position.means(position.sums)
        figures |= {"frames/s": position.frames / position.seconds, "took": position.seconds}
        if position.skipped:
            figures["skipped"] = position.skipped
        self._reporter.log((position.epoch,), "avg_train", figures)
        if position.skipped == position.steps_done and self._ranks.is_main:
            what = f"all {position.skipped} updates of epoch {position.epoch} were skipped: their losses or gradients"
            print_line(f"warning: {what} are not finite; lower --learning-rate, or leave out --amp-dtype float16")

    def _validate(self, step: tuple[int, ...]) -> dict[str, float]:
        """Log the figures of validation; returns them, the loss with the last epoch's weights, to compare epochs by."""
        engine, epoch, began = self.engine, self._position.epoch, time.perf_counter()
        found: dict[str, float] = {}
        terms: dict[str, float] = {}
        for subset, networks in self._validated.items():
            started = time.perf_counter()
            batches = batches_of(self._validation_loader)
            current: list[Batch] = []
            with memory_errors_explained(current, run=self._options, audio=self._template.audio):
                terms = engine.evaluate(remembered(batches, current), networks=networks)
            figures = {"loss": engine.objective.total(terms, epoch=epoch)} | terms
            figures["took"] = time.perf_counter() - started
            self._reporter.log(step, subset, figures, iteration=engine.iteration)
            warnings = engine.objective.warnings(figures, epoch=epoch) if subset == "val" else []
            for line in warnings if self._ranks.is_main else ():
                print_line(f"warning: {line}")
            figures["loss"] = engine.objective.total(figures, epoch=self._options.epochs)
            found |= {f"{subset}_{name}": value for name, value in figures.items()}
        self._describe(found, terms, seconds=time.perf_counter() - began)
        return found

    def _describe(self, figures: dict[str, float], terms: Iterable[str], *, seconds: float) -> None:
        """Say in words how the training goes, whose last validation took ``seconds`` and found ``figures``."""
        position, options, objective = self._position, self._options, self.engine.objective
        trained = objective.total(position.means(terms), epoch=options.epochs)
        self._history.append({"epoch": float(position.epoch), "train_loss": trained} | figures)
        left = position.seconds_left(epochs=options.epochs, steps_per_epoch=self._sampler.steps_per_epoch)
        left += (options.epochs - position.epoch) // options.validation_interval * seconds
        line = describe_training(
            self._history,
            metric=options.keep_best,
            aligned=objective.aligned,
            best_kept=None if self._best is None else self._best["epoch"],
            seconds_left=left,
            adversarial=len(objective.phases) > 1,
        )
        if line and self._ranks.is_main:
            print_line(line)

    @torch.no_grad()
    def _show_examples(self, networks: Networks, subset: str) -> None:
        batch = next(batches_of(self._validation_loader), None)
        if batch is None:
            return
        with evaluation_mode(networks):
            examples = self.engine.objective.examples(networks, batch.to(self._ranks.device))
        self._reporter.examples(subset, examples, iteration=self.engine.iteration)

    def _save(self, *, rolling: bool, figures: dict[str, float] | None = None) -> None:
        """Write a checkpoint of a finished epoch, with the ``figures`` of its validation, if any, or a rolling one."""
        position, engine, options = self._position, self.engine, self._options
        metric, value = options.keep_best, options.keep_best.value(figures or {})
        if figures and value is None and self._ranks.is_main:
            names = ", ".join(figures)
            print_line(f"warning: --keep-best {metric}: no figure of validation, expected one of {names}")
        is_best = metric.is_better(value, None if self._best is None else self._best[str(metric)])
        is_best &= position.skipped < position.steps_done  # else nothing was learned
        if is_best:
            self._best = {"epoch": position.epoch, str(metric): value}
        random_states = self._ranks.gather(_random_state(self._ranks.device))

        own = {"global_batch": self._sampler.global_batch, "random": random_states}
        own |= {"best": self._best, "history": self._history}
        try:
            with writing(options.output):
                if self._ranks.is_main:
                    checkpoint = replace(
                        self._template,
                        networks={name: network.state_dict() for name, network in engine.networks.items()},
                        ema=None if engine.ema is None else engine.ema.averages,
                        training=engine.state() | asdict(position) | own,
                    )
                    self._write(checkpoint, rolling=rolling, is_best=is_best)
            self._ranks.gather(None)
        except OutputError as error:
            raise OutputError(f"{error}; {self._how_to_resume()}") from error
        self._saved_at, self._is_due = time.monotonic(), False

    def _write(self, checkpoint: Checkpoint, *, rolling: bool, is_best: bool) -> None:
        """Write a checkpoint, and remove those that it replaces."""
        epoch, iteration, folder = self._position.epoch, self.engine.iteration, self._options.output
        path = checkpoint_path(folder, checkpoint.model, epoch=epoch, iteration=iteration if rolling else None)
        older = [old for old in saved_checkpoints(folder, checkpoint.model) if is_rolling(old)]
        save_checkpoint(path, checkpoint)
        best = ", the best validation so far" if is_best else ""
        print_line(f"saved {path} (epoch {epoch}, iteration {iteration}{best})")
        # The newest stays, to fall back to if this one is damaged.
        for old in {*older[: -1 if rolling else None]} - {path}:
            old.unlink(missing_ok=True)
        if not rolling:
            if (dtype := self._options.save_inference) is not None:
                stripped = strip_checkpoint(checkpoint, dtype=dtype)
                for target in inference_paths(folder, checkpoint.model)[: 1 + is_best]:
                    save_checkpoint(target, stripped)
            self._remove_old()

    def _remove_old(self) -> None:
        """Keep milestones, the best and the last few checkpoints of complete epochs up to this one, unless all stay."""
        options, epoch = self._options, self._position.epoch
        if options.keep_checkpoints is None:
            return
        saved = saved_checkpoints(options.output, self._template.model)
        of_epochs = [path for path in saved if not is_rolling(path) and epoch_of(path) <= epoch]
        kept = {*options.keep_milestones, *([] if self._best is None else [self._best["epoch"]])}
        removed = [path for path in of_epochs[: -options.keep_checkpoints] if epoch_of(path) not in kept]
        for path in removed:
            path.unlink(missing_ok=True)
        if removed:
            print_line(f"removed {' '.join(path.name for path in removed)} (see --keep-checkpoints)")


def _random_state(device: torch.device) -> dict[str, torch.Tensor]:
    cuda = {"cuda": torch.cuda.get_rng_state(device)} if device.type == "cuda" else {}
    return {"cpu": torch.get_rng_state()} | cuda


def _set_random_state(state: dict[str, torch.Tensor], device: torch.device) -> None:
    torch.set_rng_state(state["cpu"])
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)
