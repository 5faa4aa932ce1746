"""The training step of every model: phases, mixed precision, accumulation, processes, clipping, skipping, EMA."""

import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.nn.parallel import DistributedDataParallel

from common.data.batch import Batch
from common.distributed import Ranks
from common.errors import CheckpointError, InputError
from common.precision import Autocast, Precision
from common.training.objective import Networks, Objective, Phase
from common.training.optim import OPTIMIZERS, ExponentialMovingAverage, Optimization, load_state_by_name, state_by_name
from common.training.options import RunOptions

Counts = dict[str, dict[str, Tensor]]  # of elements, by phase and term
MAX_SKIPPED_IN_A_ROW = 10  # updates; training fails after this many

# PyTorch 2.13 renames it to `forward_sync_buffers`, which 2.11 doesn't have.
warnings.filterwarnings("ignore", "`broadcast_buffers` is deprecated", FutureWarning)


@dataclass(frozen=True)
class StepResult:
    """The result of one update, over the global batch."""

    iteration: int  # of this update, from 1
    learning_rate: float
    utterances: tuple[str, ...]  # names, on this process
    n_frames: int  # valid mel frames
    stops: bool  # whether any process asks to stop training
    saves: bool  # whether any process asks for a checkpoint
    terms: dict[str, float]  # each term's mean
    grad_norms: dict[str, float]  # by phase, before clipping
    skipped: tuple[str, ...]  # phases whose loss or gradient was not finite


class PhaseLoss(nn.Module):
    """Computes a phase's loss on one micro-batch.

    Its parameters are those of the networks that the phase trains; each one gets a gradient in every micro-batch.
    Other networks are frozen and not registered as submodules, so that no process waits for their gradients.
    """

    def __init__(self, phase: Phase, objective: Objective, networks: Networks, *, autocast: Autocast) -> None:
        super().__init__()
        self.trained = nn.ModuleDict({name: networks[name] for name in phase.trains})
        self._numerators = partial(objective.numerators, phase.name, networks)
        self._autocast = autocast

    def forward(
        self, batch: Batch, weights: Mapping[str, float], divisors: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the weighted sum of the terms, each divided by its divisor, and the detached numerators; scalars."""
        with self._autocast():
            numerators = self._numerators(batch)
        parts = [weight * numerators[name].float() / divisors[name] for name, weight in weights.items()]
        loss = sum(parts, start=torch.zeros((), device=parts[0].device))
        return loss, {name: numerator.detach() for name, numerator in numerators.items()}


class Engine:
    """Trains networks for an objective, one global batch at a time.

    Before the backward pass, each term's numerators are divided by its count over all micro-batches and processes.
    `DistributedDataParallel` averages gradients, so the loss is multiplied by the number of processes to sum them.
    """

    def __init__(
        self,
        networks: Networks,
        objective: Objective,
        optimization: Optimization,
        run: RunOptions,
        *,
        ranks: Ranks,
        amp_dtype: torch.dtype | None = None,
        same_shapes: bool = False,
    ) -> None:
        """Move the networks to the device of ``ranks`` and make an optimizer for each phase.

        ``amp_dtype`` is the mixed-precision dtype. With ``same_shapes``, all training batches have the same shape.
        """
        device = ranks.device
        self.networks = networks
        self.objective = objective
        self.iteration = 0  # updates so far
        self._schedule = optimization.schedule
        self._ranks = ranks
        self._grad_clip = run.grad_clip_thresh
        self._skipped_in_a_row = 0
        self._autocast = Precision(device.type == "cuda", amp_dtype).autocast
        for network in networks.values():
            network.to(device)
            if run.compile:
                # With a single shape, avoid dynamic shapes, which the compiler doesn't always support.
                network.compile(dynamic=None if same_shapes else True)
            ranks.broadcast([*network.parameters(), *network.buffers()])
        self._parameters = dict[str, dict[str, nn.Parameter]]()
        self.optimizers = dict[str, torch.optim.Optimizer]()
        self._scalers = dict[str, GradScaler]()
        self._losses = dict[str, PhaseLoss | DistributedDataParallel]()
        settings = {"weight_decay": run.weight_decay, "betas": optimization.betas, "eps": optimization.eps}
        for phase in objective.phases:
            trained = nn.ModuleDict({name: networks[name] for name in phase.trains})
            named = {name: parameter for name, parameter in trained.named_parameters() if parameter.requires_grad}
            self._parameters[phase.name] = named
            self.optimizers[phase.name] = OPTIMIZERS[run.optimizer](named.values(), run.learning_rate, **settings)
            self._scalers[phase.name] = GradScaler(device.type, enabled=amp_dtype is torch.float16)
            loss: PhaseLoss | DistributedDataParallel = PhaseLoss(phase, objective, networks, autocast=self._autocast)
            if ranks.world_size > 1:
                # All processes have the same buffers already; a broadcast would overwrite them in each forward pass.
                loss = DistributedDataParallel(loss, broadcast_buffers=False, gradient_as_bucket_view=True)
            self._losses[phase.name] = loss
        # Only the inference network, which comes first, has EMA weights.
        inferring = next(iter(networks.items()))
        self.ema = ExponentialMovingAverage(*inferring, decay=run.ema_decay) if run.ema_decay > 0 else None

    def step(
        self,
        micro_batches: Sequence[Batch],
        *,
        epoch: int,
        steps_per_epoch: int = 1,
        stop: bool = False,
        save: bool = False,
    ) -> StepResult:
        """Run an update on this process's micro-batches, already on the device; ``epoch`` counts from 1.

        The result tells every process whether any of them asks to ``stop`` or to ``save`` a checkpoint.
        """
        self.iteration += 1
        rate = self._schedule(self.iteration, epoch, steps_per_epoch)
        self.objective.begin_step(self.networks)
        counts, (n_frames, stops, saves) = self._sum_counts(micro_batches, float(stop), float(save))
        terms, norms = dict[str, float](), dict[str, float]()
        skipped: tuple[str, ...] = ()
        order = list(micro_batches)
        for phase in self.objective.phases:
            self.optimizers[phase.name].param_groups[0]["lr"] = rate
            weights = self.objective.weights(phase.name, epoch=epoch)
            means, norms[phase.name], applied = self._run_phase(phase, order, weights, counts[phase.name])
            terms |= means
            skipped += () if applied else (phase.name,)
            if phase.keeps:
                # The last micro-batch's graph is kept, so the next phase starts with that micro-batch.
                order.reverse()
        names = tuple(name for batch in micro_batches for name in batch.names)
        return StepResult(self.iteration, rate, names, int(n_frames), stops > 0, saves > 0, terms, norms, skipped)

    def finish(self, result: StepResult) -> None:
        """Count skipped updates; raises InputError after too many in a row."""
        if result.skipped:
            self.objective.diagnose(self.networks)
        self._skipped_in_a_row = self._skipped_in_a_row + 1 if result.skipped else 0
        if self._skipped_in_a_row >= MAX_SKIPPED_IN_A_ROW:
            last = f"the last at iteration {result.iteration} with {', '.join(result.utterances)}"
            what = f"{self._skipped_in_a_row} updates in a row had a non-finite loss or gradient, {last}"
            raise InputError(f"{what}; check these files, or lower --learning-rate")

    def _run_phase(
        self, phase: Phase, micro_batches: Sequence[Batch], weights: Mapping[str, float], counts: dict[str, Tensor]
    ) -> tuple[dict[str, float], float, bool]:
        """Update one phase's networks; return the terms' means, the gradient norm, and whether the step was applied.

        If a weighted term or the norm is not finite, weights and buffers stay unchanged.
        """
        optimizer, scaler = self.optimizers[phase.name], self._scalers[phase.name]
        phase_loss = self._losses[phase.name]
        for other in self.objective.phases:
            for key, parameter in self._parameters[other.name].items():
                parameter.requires_grad_(key.partition(".")[0] in phase.trains + phase.keeps)
        optimizer.zero_grad(set_to_none=True)
        divisors = {name: count.clamp(min=1) for name, count in counts.items()}
        buffers = [buffer for name in phase.trains for buffer in self.networks[name].buffers()]
        copies = [buffer.clone() for buffer in buffers]
        totals = {name: torch.zeros_like(count) for name, count in counts.items()}
        without_exchange = phase_loss.no_sync if isinstance(phase_loss, DistributedDataParallel) else nullcontext
        for index, batch in enumerate(micro_batches):
            with nullcontext() if index == len(micro_batches) - 1 else without_exchange():
                loss, numerators = phase_loss(batch, weights, divisors)
                scaler.scale(loss * self._ranks.world_size).backward()
            for name, numerator in numerators.items():
                totals[name] += numerator
        scaler.unscale_(optimizer)
        scaler.update()
        gradients = [p.grad for p in self._parameters[phase.name].values() if p.grad is not None]
        means = self._ranks.sum(torch.stack(list(totals.values()))) / torch.stack(list(divisors.values()))
        total_norm = torch.nn.utils.get_total_norm(gradients).to(means)
        *values, norm = torch.stack([*means.unbind(), total_norm]).tolist()  # the only device synchronization
        terms = dict(zip(totals, values))
        applied = all(map(math.isfinite, [*(terms[name] for name in weights), norm]))
        if applied:
            if norm > self._grad_clip:
                torch._foreach_mul_(gradients, self._grad_clip / norm)
            optimizer.step()
            if self.ema is not None and self.ema.name in phase.trains:
                self.ema.update()
        elif buffers:
            torch._foreach_copy_(buffers, copies)
        optimizer.zero_grad(set_to_none=True)
        return terms, norm, applied

    def _sum_counts(self, micro_batches: Sequence[Batch], *requests: float) -> tuple[Counts, list[float]]:
        """Sum each phase's counts, the mel frames, and ``requests`` over micro-batches and processes."""
        own: dict[tuple[str, str], Any] = {}
        for phase, batch in itertools.product(self.objective.phases, micro_batches):
            for name, count in self.objective.counts(phase.name, batch).items():
                own[phase.name, name] = own.get((phase.name, name), 0) + count.double()  # exact in float64
        frames = torch.stack([batch.n_frames for batch in micro_batches]).sum().double()
        sums = self._ranks.sum(torch.stack([*own.values(), frames, *map(frames.new_tensor, requests)]))
        counts: Counts = {phase.name: {} for phase in self.objective.phases}
        for (of_phase, name), count in zip(own, sums.unbind()):
            counts[of_phase][name] = count
        return counts, sums[len(own) :].tolist()

    @torch.no_grad()
    def evaluate(self, batches: Iterable[Batch], *, networks: Networks | None = None) -> dict[str, float]:
        """Return each validation term's mean over all processes' batches, computed in evaluation mode."""
        networks = self.networks if networks is None else networks
        sums = dict[str, Tensor]()
        with evaluation_mode(networks):
            for batch in batches:
                with self._autocast():
                    terms = self.objective.evaluate(networks, batch.to(self._ranks.device))
                for name, term in terms.items():
                    pair = torch.stack([term.total.double(), term.count.double()])
                    sums[name] = sums[name] + pair if name in sums else pair
        everywhere: dict[str, Any] = {}  # processes without a batch also take part
        for own in self._ranks.gather({name: pair.cpu() for name, pair in sums.items()}):
            everywhere |= {name: everywhere.get(name, 0) + pair for name, pair in own.items()}
        return {name: float(total / count) for name, (total, count) in everywhere.items() if count > 0}

    def state(self) -> dict[str, Any]:
        """Return the state that exact resume needs besides the weights: optimizers, gradient scalers, counters."""
        scalers = {phase: one.state_dict() for phase, one in self._scalers.items() if one.is_enabled()}
        scaler = {
            "scales": {phase: state["scale"] for phase, state in scalers.items()},
            "finite_since": {phase: state["_growth_tracker"] for phase, state in scalers.items()},
        }
        optimizers = {name: state_by_name(one, self._parameters[name]) for name, one in self.optimizers.items()}
        counters = {"iteration": self.iteration, "skipped_in_a_row": self._skipped_in_a_row}
        return counters | {"scaler": scaler, "optimizers": optimizers}

    def load_state(self, state: dict[str, Any], *, where: str) -> list[str]:
        """Restore the result of `state`; raises CheckpointError if it doesn't fit the optimizers.

        Returns lines about what is reinitialized.
        """
        given, scales = state["optimizers"], state.get("scaler", {}).get("scales", {})
        if unknown := sorted(given.keys() - self.optimizers):
            expected = f"expected {', '.join(self.optimizers)}; use the options of the run"
            raise CheckpointError(f"{where}: it has optimizers for {', '.join(unknown)}, {expected}")
        self.iteration = state["iteration"]
        self._skipped_in_a_row = state.get("skipped_in_a_row", 0)
        for phase, scaler in self._scalers.items():
            if scaler.is_enabled() and phase in scales:
                since = state["scaler"]["finite_since"][phase] % scaler.get_growth_interval()
                own = {"scale": scales[phase], "_growth_tracker": since}
                scaler.load_state_dict(scaler.state_dict() | own)
        for phase in given:
            load_state_by_name(self.optimizers[phase], given[phase], self._parameters[phase], where=where)
        lost = [one for one in self.optimizers if one not in given or (self.iteration and not given[one]["states"])]
        line = f"{where} has no optimizer state for {' and '.join(lost)}, so it is reinitialized"
        return [line] if lost else []


@contextmanager
def evaluation_mode(networks: Networks) -> Iterator[None]:
    """Put networks in evaluation mode within the block, then back in training mode."""
    for network in networks.values():
        network.eval()
    yield
    for network in networks.values():
        network.train()
