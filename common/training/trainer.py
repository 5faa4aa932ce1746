"""The training loop of every model: epochs, validation, logs, checkpoints, exact resume, and clean stops."""

import itertools
import math
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from common.checkpoints.checkpoint import Checkpoint, checkpoint_path, is_rolling, save_checkpoint, saved_checkpoints
from common.checkpoints.loading import load_weights
from common.config import AudioConfig
from common.data.batch import Batch, Dataset
from common.data.loader import GlobalBatchSampler, batches_of, build_loader, validation_batches
from common.distributed import Ranks
from common.errors import OutputError
from common.files import lock_folder, writing
from common.logger import Logger
from common.progress import print_line, progress
from common.registry import get_model
from common.signals import StopSignals
from common.training.engine import Engine, StepResult, evaluation_mode
from common.training.objective import Networks
from common.training.options import RunOptions
from common.training.reporter import Reporter, has_terminal, print_once
from common.training.verdict import describe_training, find_figure, validations_since_best

_ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Position:
    """Epoch and update of a run, with running sums for the current epoch's averages."""

    epoch: int = 1
    steps_done: int = 0  # updates of this epoch
    sums: dict[str, float] = field(default_factory=dict)
    frames: int = 0
    seconds: float = 0.0
    skipped: int = 0

    def add(self, result: StepResult, loss: float, seconds: float) -> None:
        """Count one update with its total loss and time."""
        self.frames += result.n_frames
        self.seconds += seconds
        self.skipped += bool(result.skipped)
        if not result.skipped:
            for name, value in (result.terms | {"loss": loss}).items():
                self.sums[name] = self.sums.get(name, 0.0) + value

    @property
    def means(self) -> dict[str, float]:
        """The mean of each term over this epoch's updates that were not skipped."""
        n_applied = max(1, self.steps_done - self.skipped)
        return {name: total / n_applied for name, total in self.sums.items()}


class Trainer:
    """Trains until the last epoch or until asked to stop."""

    def __init__(
        self,
        engine: Engine,
        *,
        template: Checkpoint,
        training_set: Dataset,
        validation_set: Dataset,
        ranks: Ranks,
        options: RunOptions,
        logger: Logger,
    ) -> None:
        """``template`` is this run's checkpoint without weights."""
        self.engine = engine
        self.is_fine_tuning = False  # whether to validate the initial weights, for comparison
        self._lock = lock_folder(options.output) if ranks.is_main else None
        self._template = template
        self._ranks = ranks
        self._options = options
        self._position = Position()
        self._stopping = False
        self._is_due = False  # whether --minutes-per-checkpoint have passed
        self._saved_at = time.monotonic()
        self._reported_at = 0.0
        self._best: dict[str, Any] | None = None  # epoch, iteration within it, and metric of the best validation
        self._history: list[dict[str, float]] = []  # of validations, for `describe_training`
        self._sampler = GlobalBatchSampler(
            training_set.lengths,
            batch_size=options.batch_size,
            accumulation=options.gradient_accumulation_steps,
            seed=options.seed,
            ranks=ranks,
            sorted_updates=options.sorted_updates,
        )
        pinned, seed = ranks.device.type == "cuda", options.seed
        load = partial(build_loader, n_workers=options.num_workers or 0, pin_memory=pinned, seed=seed)
        self._training_loader = load(training_set, self._sampler)
        own = validation_batches(validation_set.lengths, batch_size=options.batch_size, ranks=ranks)
        self._validation_loader = load(validation_set, own)
        self._validated = {"val": engine.networks}  # subset of the log -> networks
        if engine.ema is not None:
            self._validated["val_ema"] = engine.networks | engine.ema.networks
        self._reporter = Reporter(logger, options.output, engine.objective, template, is_main=ranks.is_main)

    def resume(self, checkpoint: Checkpoint, *, where: Path) -> list[str]:
        """Restore the training state of ``checkpoint``, whose weights are already loaded.

        Returns lines about what can't be restored. Raises CheckpointError if the state doesn't fit.
        """
        state, ema = checkpoint.training, self.engine.ema
        assert state is not None
        notes = self.engine.load_state(state, where=str(where))
        if ema is not None and checkpoint.ema is not None:
            load_weights(ema.networks, checkpoint.ema, where=str(where), kind="EMA weights")
        elif ema is not None:
            notes.append(f"{where} has no EMA weights: they start as a copy of its weights")
        elif checkpoint.ema is not None:
            notes.append(f"the EMA weights of {where} are dropped, since --ema-decay is 0")
        self._position, n = resumed_position(state, self._sampler), self._ranks.world_size
        best = state.get("best")
        if best is not None and self._options.keep_best in best:  # otherwise the best of another metric
            self._best = best if self._path(best["epoch"], best.get("iteration")).is_file() else None
        self._history = list(state.get("history", []))
        random = state.get("random", [])
        if len(random) == n:
            _set_random_state(random[self._ranks.rank], self._ranks.device)
        elif state.get("steps_done") is not None:
            notes.append(f"{where} has random states for {len(random)} processes, not {n}: they are reinitialized")
        return notes

    def fit(self) -> signal.Signals | None:
        """Train until the last epoch; return the signal that stopped it early (SIGTERM if another process got it)."""
        position, options, n_steps = self._position, self._options, self._sampler.steps_per_epoch
        last_epoch = min(options.epochs, position.epoch - 1 + (options.epochs_this_job or options.epochs))
        if position.epoch > last_epoch:
            print_once(f"nothing to train: {position.epoch - 1} epochs are done, --epochs is {options.epochs}")
        for unfinished in options.output.glob(f".{self._template.model}_*.tmp") if self._ranks.is_main else ():
            unfinished.unlink(missing_ok=True)  # left by a killed run
        shown = self._ranks.is_main and has_terminal()
        bar = progress(total=last_epoch * n_steps, desc="training", unit="step", enabled=shown)
        try:
            with StopSignals() as signals, bar:
                bar.update((position.epoch - 1) * n_steps + position.steps_done)
                self._saved_at = time.monotonic()
                if self.is_fine_tuning:
                    self._history.append({"epoch": 0.0} | self._validate((0,)))
                while position.epoch <= last_epoch and not self._stopping and not self._is_out_of_patience():
                    self._train_epoch(bar, signals)
                    if position.steps_done < n_steps:
                        self._save(rolling=True)
                        break
                    self._finish_epoch(is_last=position.epoch == last_epoch)
                    self._position = position = Position(epoch=position.epoch + 1)
            self._reporter.wait_for_plots()
        except OutputError as error:
            saved = saved_checkpoints(options.output, self._template.model)
            last = f"the last checkpoint is {saved[-1]}: add --resume to continue" if saved else "no checkpoint exists"
            raise OutputError(f"{error}; {last}") from error
        finally:
            self._reporter.close()
        is_over = position.epoch > options.epochs or self._is_out_of_patience()
        if self._stopping and not is_over and position.epoch <= last_epoch:
            return signals.received or signal.SIGTERM
        if is_over and not self._stopping:
            print_once(*next_steps(self._template.model, self._template.audio, options))
        return None

    def _train_epoch(self, bar: Any, signals: StopSignals) -> None:
        """Train to the end of the current epoch, or until any process is asked to stop."""
        position, options, n_steps = self._position, self._options, self._sampler.steps_per_epoch
        self._sampler.set_position(epoch=position.epoch, step=position.steps_done)
        self._reported_at = time.perf_counter()
        for micro_batches in self.updates():
            is_late = time.monotonic() - self._saved_at >= 60 * (options.minutes_per_checkpoint or math.inf)
            asked = {"stop": signals.received is not None, "save": is_late and self._ranks.is_main}
            result = self.engine.step(micro_batches, epoch=position.epoch, steps_per_epoch=n_steps, **asked)
            position.steps_done += 1
            self._report(result, bar)
            if position.steps_done == n_steps or self._stopping:
                return
            validates = self._is_multiple_of(options.validation_steps)
            is_best = validates and self._compare(self._validate((position.epoch, position.steps_done, n_steps)))
            if saves := is_best or self._is_due or self._is_multiple_of(options.steps_per_checkpoint):
                self._save(rolling=True, is_best=is_best)
            if validates or saves:
                self._reported_at = time.perf_counter()  # exclude both from the next update's time

    def updates(self) -> Iterator[list[Batch]]:
        """Yield this process's micro-batches for each update, on the device."""
        size, batches = self._options.gradient_accumulation_steps, batches_of(self._training_loader)
        while len(group := list(itertools.islice(batches, size))) == size:
            yield [batch.to(self._ranks.device) for batch in group]

    def _report(self, result: StepResult, bar: Any) -> None:
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

    def _is_out_of_patience(self) -> bool:
        """Whether the last ``--patience`` validations brought no improvement."""
        patience = self._options.patience
        return patience > 0 and validations_since_best(self._history, self._options.keep_best) >= patience

    def _finish_epoch(self, *, is_last: bool) -> None:
        """Log an epoch, validate, and save what is due."""
        position, options = self._position, self._options
        figures = {"loss": math.nan} | position.means
        figures |= {"frames/s": position.frames / position.seconds, "took": position.seconds}
        figures |= {"skipped": position.skipped} if position.skipped else {}
        self._reporter.log((position.epoch,), "avg_train", figures)
        validates = is_last or position.epoch % options.validation_interval == 0
        validates = validates or self._is_multiple_of(options.validation_steps)
        is_best = validates and self._compare(self._validate((position.epoch,)))
        if self._is_out_of_patience():
            is_last = True
            print_once(f"stopping early: {options.patience} validations without a better {options.keep_best}")
        shows = is_last or position.epoch % (options.samples_interval or options.validation_interval) == 0
        for subset, networks in self._validated.items() if shows and self._ranks.is_main else ():
            self._show_examples(networks, subset)
        if is_best or is_last or self._stopping or position.epoch % options.epochs_per_checkpoint == 0:
            self._save(rolling=False, is_best=is_best)
        elif self._is_due:
            self._save(rolling=True)

    def _validate(self, step: tuple[int, ...]) -> dict[str, float]:
        """Validate and log the figures; return them with the loss weighted as in the last epoch, for comparison."""
        engine, epoch = self.engine, step[0]
        found: dict[str, float] = {}
        for subset, networks in self._validated.items():
            started = time.perf_counter()
            terms = engine.evaluate(batches_of(self._validation_loader), networks=networks)
            figures = {"loss": engine.objective.total(terms, epoch=epoch)} | terms
            figures["took"] = time.perf_counter() - started
            self._reporter.log(step, subset, figures, iteration=engine.iteration)
            figures["loss"] = engine.objective.total(figures, epoch=self._options.epochs)
            found |= {f"{subset}_{name}": value for name, value in figures.items()}
        return found

    def _compare(self, figures: dict[str, float]) -> bool:
        """Record a validation and print a line about the training; return whether it is the best so far."""
        position, options, objective = self._position, self._options, self.engine.objective
        metric, value = options.keep_best, find_figure(figures, options.keep_best)
        if value is None:
            print_once(f"warning: --keep-best {metric}: not a validation metric, expected one of {', '.join(figures)}")
        best = math.inf if self._best is None else self._best[metric]
        # NaN is never better, and if all updates were skipped, nothing was learned.
        if is_best := value is not None and value < best and position.skipped < position.steps_done:
            within = {"iteration": self.engine.iteration} if position.steps_done < self._sampler.steps_per_epoch else {}
            self._best = {"epoch": position.epoch, metric: value} | within
        trained = objective.total(position.means, epoch=options.epochs) if position.sums else math.inf
        self._history.append({"epoch": float(position.epoch), "train_loss": trained} | figures)
        line = describe_training(
            self._history,
            metric=metric,
            aligned=objective.aligned,
            best_kept=None if self._best is None else self._best["epoch"],
            adversarial=len(objective.phases) > 1,
        )
        print_once(*filter(None, [line]))
        return is_best

    @torch.no_grad()
    def _show_examples(self, networks: Networks, subset: str) -> None:
        if (batch := next(batches_of(self._validation_loader), None)) is not None:
            with evaluation_mode(networks):
                examples = self.engine.objective.examples(networks, batch.to(self._ranks.device))
            self._reporter.examples(subset, examples, iteration=self.engine.iteration)

    def _path(self, epoch: int, iteration: int | None) -> Path:
        return checkpoint_path(self._options.output, self._template.model, epoch=epoch, iteration=iteration)

    def _save(self, *, rolling: bool, is_best: bool = False) -> None:
        """Write a checkpoint of a finished epoch, or a rolling one within an epoch, and remove those it replaces."""
        engine = self.engine
        own: dict[str, Any] = {
            "global_batch": self._sampler.global_batch,
            "sorted_updates": self._options.sorted_updates,
            "random": self._ranks.gather(_random_state(self._ranks.device)),
            "best": self._best,
            "history": self._history,
        }
        if self._ranks.is_main:
            checkpoint = replace(
                self._template,
                networks={name: network.state_dict() for name, network in engine.networks.items()},
                ema=None if engine.ema is None else engine.ema.averages,
                training=engine.state() | asdict(self._position) | own,
            )
            epoch, iteration = self._position.epoch, engine.iteration
            path, best = self._path(epoch, iteration if rolling else None), ", the best validation so far" * is_best
            with writing(self._options.output):
                save_checkpoint(path, checkpoint)
                print_line(f"saved {path} (epoch {epoch}, iteration {iteration}{best})")
                self._remove_old(path)
        self._ranks.gather(None)
        self._saved_at, self._is_due = time.monotonic(), False

    def _remove_old(self, newest: Path) -> None:
        """Remove the checkpoints that ``newest`` replaces; keep the best one, the milestones and the last epochs'.

        Within an epoch, also keep the previous rolling checkpoint, in case the newest is damaged.
        """
        options, saved = self._options, saved_checkpoints(self._options.output, self._template.model)
        kept = {newest, *(self._path(epoch, None) for epoch in options.keep_milestones)}
        if self._best is not None:
            kept.add(self._path(self._best["epoch"], self._best.get("iteration")))
        saved = saved[: saved.index(newest) + 1]
        rolling = [path for path in saved if is_rolling(path)]
        removed = rolling[:-2] if is_rolling(newest) else rolling
        if options.keep_checkpoints is not None:
            removed += [path for path in saved if not is_rolling(path)][: -options.keep_checkpoints]
        for path in {*removed} - kept:
            path.unlink(missing_ok=True)


def _random_state(device: torch.device) -> dict[str, torch.Tensor]:
    cuda = {"cuda": torch.cuda.get_rng_state(device)} if device.type == "cuda" else {}
    return {"cpu": torch.get_rng_state()} | cuda


def _set_random_state(state: dict[str, torch.Tensor], device: torch.device) -> None:
    torch.set_rng_state(state["cpu"])
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)


def resumed_position(state: dict[str, Any], sampler: GlobalBatchSampler) -> Position:
    """Return a checkpoint's position; if the global batch has changed, an unfinished epoch starts over."""
    steps = state.get("steps_done")
    if steps is None or steps * state["global_batch"] >= sampler.steps_per_epoch * sampler.global_batch:
        return Position(epoch=state["epoch"] + 1)  # the epoch is complete, as always in other programs' checkpoints
    if state["global_batch"] != sampler.global_batch:
        return Position(epoch=state["epoch"])
    return Position(**{one.name: state[one.name] for one in fields(Position)})


def next_steps(model: str, audio: AudioConfig, run: RunOptions) -> list[str]:
    """Return lines with commands to paste, for the last checkpoint of a training with mels ``audio``."""
    spec, checkpoint, command = get_model(model), str(saved_checkpoints(run.output, model)[-1]), "speech"
    if (_ROOT / "pyproject.toml").is_file():  # not installed
        command = f"PYTHONPATH={shlex.quote(str(_ROOT))} {shlex.quote(sys.executable)} -m speech_toolkit"
    named = [f"--{spec.option}", checkpoint]
    steps = [["speak", "Hello there.", *named], ["serve", *named], ["export", checkpoint]]
    if spec.role == "recognizer":
        lists = map(str, run.validation_files)
        steps[0] = ["transcribe", *named, "--input", *lists, "--dataset-path", str(run.dataset_path)]
    if spec.role == "vocoder" and audio != AudioConfig():  # the shipped voice makes other mels
        steps = steps[2:]
    if spec.find("export", "exports") is None:
        steps.pop()
    return [f"next, to {words[0]}: {command} {shlex.join(words)}" for words in steps]
