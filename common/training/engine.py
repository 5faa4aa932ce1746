"""The training step of every model: phases, mixed precision, accumulation, processes, clipping, skipping, EMA."""

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.nn.parallel import DistributedDataParallel

from common.data import Batch
from common.distributed import Ranks
from common.errors import CheckpointError, InputError
from common.precision import Autocast, Precision, allow_compiled_shapes, cudnn_search
from common.training.objective import Networks, Objective, Phase
from common.training.optim import (
    OPTIMIZERS,
    ExponentialMovingAverage,
    Optimization,
    is_known,
    load_state_by_name,
    restore_unless,
    state_by_name,
)
from common.training.options import RunOptions
from common.training.step_graphs import Figures, PhaseWeights, RecordedUpdates, Weights

MAX_SKIPPED_IN_A_ROW = 10  # updates; a run of so many ends

# PyTorch 2.13 calls it `forward_sync_buffers`, which 2.11 does not know.
warnings.filterwarnings("ignore", "`broadcast_buffers` is deprecated", FutureWarning)


class StepResult:
    """What one update did; all values are over the global batch.

    Its figures (the properties) wait for the device until the update is done there: read those of one update after
    the next has been launched.
    """

    def __init__(self, iteration: int, figures: Figures, *, learning_rate: float, utterances: tuple[str, ...]) -> None:
        """``figures`` are float64 scalars of one device; ``utterances`` are the names of this process's."""
        self.iteration = iteration  # of this update, from 1
        self.learning_rate = learning_rate
        self.utterances = utterances
        values = torch.stack(list(figures.values()))
        self._names = tuple(figures)
        self._values = values.to("cpu", non_blocking=True)  # into pinned memory
        self._arrived: torch.cuda.Event | None = None
        if values.is_cuda:
            self._arrived = torch.cuda.Event()
            self._arrived.record()

    @cached_property
    def figures(self) -> dict[str, dict[str, float]]:
        """All figures as numbers, by kind and name; waits for them.

        ``term`` holds each term's mean, ``grad_norm`` phases' norms before clipping, and ``step`` the valid mel frames
        (``n_frames``) and how many processes ask that training ``stops`` or ``saves``.
        """
        if self._arrived is not None:
            self._arrived.synchronize()
        found: dict[str, dict[str, float]] = {}
        for (kind, name), value in zip(self._names, self._values.tolist()):
            found.setdefault(kind, {})[name] = value
        return found

    @property
    def terms(self) -> dict[str, float]:
        """Each term's mean."""
        return self.figures["term"]

    @property
    def skipped(self) -> tuple[str, ...]:
        """Phases whose update was skipped for a loss or gradient that is not finite."""
        return tuple(phase for phase, finite in self.figures["finite"].items() if not finite)


class PhaseLoss(nn.Module):
    """Computes a phase's loss of one micro-batch.

    Its parameters are those of the networks that the phase trains. The others are called unwrapped and frozen, so that
    no process waits for their gradients. Each of its parameters must get a gradient in each micro-batch.
    """

    def __init__(self, phase: Phase, objective: Objective, networks: Networks, *, autocast: Autocast) -> None:
        super().__init__()
        self.trained = nn.ModuleDict({name: networks[name] for name in phase.trains})
        self._numerators = partial(objective.numerators, phase.name, networks)
        self._autocast = autocast

    def forward(
        self, batch: Batch, weights: PhaseWeights, divisors: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The weighted sum of the terms, each divided by its divisor, and all numerators, detached; scalars."""
        with self._autocast():
            numerators = self._numerators(batch)
        parts = [weight * numerators[name].float() / divisors[name] for name, weight in weights.items()]
        loss = sum(parts, start=torch.zeros((), device=parts[0].device))
        return loss, {name: numerator.detach() for name, numerator in numerators.items()}


class Engine:
    """Trains networks for an objective, one global batch at a time.

    What a step does depends on the global batch alone: each term's numerators are divided by its count over all
    micro-batches and processes before the backward pass, and gradients are summed: `DistributedDataParallel` averages
    them over processes, of losses times the number of processes.
    """

    def __init__(
        self,
        networks: Networks,
        objective: Objective,
        optimization: Optimization,
        run: RunOptions,
        *,
        ranks: Ranks,
        steps_per_epoch: int = 1,
        amp_dtype: torch.dtype | None = None,
        same_shapes: bool = False,
    ) -> None:
        """Move the networks to the device of ``ranks``, and make an optimizer for each phase.

        Mixed precision is in ``amp_dtype``. ``same_shapes`` says that all batches of training have one shape, so that
        compiled code is made for no other, and cuDNN tries its algorithms for it.
        """
        device = ranks.device
        self.networks = networks
        self.objective = objective
        self.iteration = 0  # updates so far
        self._schedule = optimization.schedule
        self._steps_per_epoch = steps_per_epoch
        self._ranks = ranks
        self._grad_clip = run.grad_clip_thresh
        self._same_shapes = same_shapes
        self._skipped_in_a_row = 0
        self._autocast = Precision(device.type == "cuda", amp_dtype).autocast
        # What this process asks of all, float64 scalars that graphs read.
        self._requests = {name: torch.zeros((), dtype=torch.float64, device=device) for name in ("stops", "saves")}
        self._recorded = RecordedUpdates(self._update, device, forget=self._forget) if run.cuda_graphs else None
        # A number would be recorded.
        rate = torch.zeros((), device=device) if run.cuda_graphs and device.type == "cuda" else run.learning_rate
        if run.compile and run.length_buckets:
            allow_compiled_shapes(run.length_buckets)
        for network in networks.values():
            network.to(device)
            if run.compile:
                # Batches of one shape need no code for others, which the compiler cannot always make.
                network.compile(dynamic=False if run.length_buckets else None if same_shapes else True)
            ranks.broadcast([*network.parameters(), *network.buffers()])
        self._parameters: dict[str, dict[str, nn.Parameter]] = {}
        self.optimizers: dict[str, torch.optim.Optimizer] = {}
        self._scalers: dict[str, GradScaler] = {}
        self._losses: dict[str, PhaseLoss | DistributedDataParallel] = {}
        for phase in objective.phases:
            named = {
                f"{name}.{key}": parameter
                for name in phase.trains
                for key, parameter in networks[name].named_parameters()
                if parameter.requires_grad
            }
            self._parameters[phase.name] = named
            settings = {"weight_decay": run.weight_decay, "betas": optimization.betas, "eps": optimization.eps}
            self.optimizers[phase.name] = OPTIMIZERS[run.optimizer](named.values(), rate, **settings)
            self._scalers[phase.name] = GradScaler(device.type, enabled=amp_dtype is torch.float16)
            loss: PhaseLoss | DistributedDataParallel = PhaseLoss(phase, objective, networks, autocast=self._autocast)
            if ranks.world_size > 1:
                # Buffers are the same everywhere already, and would be overwritten in each forward pass.
                loss = DistributedDataParallel(loss, broadcast_buffers=False, gradient_as_bucket_view=True)
            self._losses[phase.name] = loss
        # Only the network that infers, which comes first, is ever used with averaged weights.
        inferring = dict([next(iter(networks.items()))])
        self.ema = ExponentialMovingAverage(inferring, decay=run.ema_decay) if run.ema_decay > 0 else None

    def step(self, micro_batches: Sequence[Batch], *, epoch: int, stop: bool = False, save: bool = False) -> StepResult:
        """Run an update from this process's micro-batches, already on the device.

        Its figures say to all processes whether one of them asks to ``stop`` or for a checkpoint. Nothing waits for the
        device: give the result to `finish` after the next update has been launched.
        """
        self.iteration += 1
        rate = self._schedule(self.iteration, epoch, self._steps_per_epoch)
        for group in (group for optimizer in self.optimizers.values() for group in optimizer.param_groups):
            group["lr"] = group["lr"].fill_(rate) if isinstance(group["lr"], Tensor) else rate
        self._requests["stops"].fill_(stop)
        self._requests["saves"].fill_(save)
        weights = {phase.name: self.objective.weights(phase.name, epoch=epoch) for phase in self.objective.phases}
        with cudnn_search(enabled=self._same_shapes):
            figures = (self._recorded or self._update)(micro_batches, weights)
        utterances = tuple(name for batch in micro_batches for name in batch.names)
        return StepResult(self.iteration, figures, learning_rate=rate, utterances=utterances)

    def finish(self, result: StepResult) -> None:
        """Count an update that was skipped; waits for its figures. InputError where too many in a row were."""
        if result.skipped:
            self.objective.diagnose(self.networks)
        self._skipped_in_a_row = self._skipped_in_a_row + 1 if result.skipped else 0
        if self._skipped_in_a_row >= MAX_SKIPPED_IN_A_ROW:
            raise InputError(
                f"{self._skipped_in_a_row} updates in a row had a loss or gradient that is not finite, the last at "
                f"iteration {result.iteration} with {', '.join(result.utterances)}; check these files, "
                "or lower --learning-rate"
            )

    def _forget(self) -> None:
        """Undo what the host keeps of an update that was launched in part, of which nothing has run on the device."""
        for scaler in self._scalers.values():
            if scaler.is_enabled():
                scaler.update(new_scale=scaler.get_scale())  # gradients are not unscaled any more

    def _update(self, micro_batches: Sequence[Batch], weights: Weights) -> Figures:
        """Update the networks in all phases, which the host only launches; returns float64 scalars on the device."""
        self.objective.begin_step(self.networks)
        # Summed over processes together with the first phase's counts: no exchange of their own.
        frames = torch.stack([batch.n_frames for batch in micro_batches]).sum().double()
        shared = self._requests | {"n_frames": frames}
        figures: Figures = {}
        order = list(micro_batches)
        for phase in self.objective.phases:
            figures |= self._run_phase(phase, order, weights=weights[phase.name], shared=shared)
            shared = {}
            if phase.keeps:
                # The graph that is kept is that of the last micro-batch (each forward pass replaces the one before);
                # the next phase uses it first, while its tensors are still there.
                order.reverse()
        return figures

    def _run_phase(
        self, phase: Phase, micro_batches: Sequence[Batch], *, weights: PhaseWeights, shared: dict[str, Tensor]
    ) -> Figures:
        """Update the networks of one phase; figures with the sums of ``shared`` over all processes."""
        optimizer, phase_loss = self.optimizers[phase.name], self._losses[phase.name]
        scaler = self._scalers[phase.name]
        for other in self.objective.phases:
            for key, parameter in self._parameters[other.name].items():
                parameter.requires_grad_(key.partition(".")[0] in phase.trains + phase.keeps)
        optimizer.zero_grad(set_to_none=True)
        counts, shared = self._sum_counts(phase.name, micro_batches, shared)
        divisors = {name: count.clamp(min=1) for name, count in counts.items()}
        buffers = [buffer for name in phase.trains for buffer in self.networks[name].buffers()]
        copies = [buffer.clone() for buffer in buffers]  # to go back to
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
        sums = self._ranks.sum(torch.stack(list(totals.values())))
        means = dict(zip(totals, (sums / torch.stack(list(divisors.values()))).unbind()))
        gradients = [p.grad for p in self._parameters[phase.name].values() if p.grad is not None]
        norm = torch.nn.utils.get_total_norm(gradients).to(sums)
        # Terms that are only logged do not stop an update.
        finite = torch.stack([*(means[name] for name in weights), norm]).isfinite().all()
        restore_unless(finite.float(), buffers, copies)
        self._apply(phase, gradients, norm=norm, applied=finite.float())
        figures: Figures = {("term", name): value for name, value in means.items()}
        figures |= {("grad_norm", phase.name): norm, ("finite", phase.name): finite.double()}
        return figures | {("step", name): value for name, value in shared.items()}

    @torch.no_grad()
    def _apply(self, phase: Phase, gradients: list[Tensor], *, norm: Tensor, applied: Tensor) -> None:
        """Clip, step and update the EMA, or leave everything as it was where ``applied`` is 0; the device decides."""
        if self._grad_clip < math.inf:
            factor = (self._grad_clip / norm).clamp(max=1).float()
            if not is_known(factor == 1):
                torch._foreach_mul_(gradients, factor)
        optimizer: Any = self.optimizers[phase.name]
        optimizer.found_inf = 1 - applied  # what torch's fused optimizers skip an update by, and those of `optim`
        for group in optimizer.param_groups:
            # torch's optimizers ask for it while they are recorded, and warn of it elsewhere.
            group["capturable"] = self._recorded is not None and self._recorded.recording
        optimizer.step()
        optimizer.found_inf = None  # nothing that a graph's memory holds is kept
        optimizer.zero_grad(set_to_none=True)
        if self.ema is not None:
            self.ema.update(phase.trains, applied=applied)

    def _sum_counts(
        self, phase: str, micro_batches: Sequence[Batch], figures: dict[str, Tensor]
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Counts of a phase's terms, and ``figures``, summed over micro-batches and processes in one exchange."""
        own = [self.objective.counts(phase, batch) for batch in micro_batches]
        # float64 holds every count exactly.
        counts = {name: torch.stack([one[name].double() for one in own]).sum() for name in own[0]}
        sums = self._ranks.sum(torch.stack([*counts.values(), *figures.values()])).unbind()
        return dict(zip(counts, sums)), dict(zip(figures, sums[len(counts) :]))

    @torch.no_grad()
    def evaluate(self, batches: Iterable[Batch], *, networks: Networks | None = None) -> dict[str, float]:
        """Each validation term's mean over all batches of all processes, in evaluation mode."""
        networks = self.networks if networks is None else networks
        sums: dict[str, Tensor] = {}
        with evaluation_mode(networks):
            for batch in batches:
                with self._autocast():
                    terms = self.objective.evaluate(networks, batch.to(self._ranks.device))
                for name, term in terms.items():
                    pair = torch.stack([term.total.double(), term.count.double()])
                    sums[name] = sums[name] + pair if name in sums else pair
        everywhere: dict[str, Any] = {}  # a process whose share is empty takes part too
        for own in self._ranks.gather({name: pair.cpu() for name, pair in sums.items()}):
            everywhere |= {name: everywhere.get(name, 0) + pair for name, pair in own.items()}
        return {name: float(total / count) for name, (total, count) in everywhere.items() if count > 0}

    def state(self) -> dict[str, Any]:
        """What a checkpoint needs to resume exactly, besides the weights: optimizers, scaler, counters."""
        scalers = {phase: one.state_dict() for phase, one in self._scalers.items() if one.is_enabled()}
        return {
            "iteration": self.iteration,
            "skipped_in_a_row": self._skipped_in_a_row,
            "scaler": {
                "scales": {phase: state["scale"] for phase, state in scalers.items()},
                "finite_since": {phase: state["_growth_tracker"] for phase, state in scalers.items()},
            },
            "optimizers": {
                phase: state_by_name(optimizer, self._parameters[phase]) for phase, optimizer in self.optimizers.items()
            },
        }

    def load_state(self, state: dict[str, Any], *, where: str) -> list[str]:
        """Restore what `state` gave, but for the weights; CheckpointError where it does not fit the optimizers.

        Returns lines on what begins anew.
        """
        phases, given = list(self.optimizers), state["optimizers"]
        if unknown := sorted(given.keys() - self.optimizers):
            expected = f"expected {', '.join(phases)}; give the run's options"
            raise CheckpointError(f"{where}: its optimizers are of {', '.join(unknown)}, {expected}")
        self.iteration = state["iteration"]
        self._skipped_in_a_row = state.get("skipped_in_a_row", 0)
        scalers = {phase: one for phase, one in self._scalers.items() if one.is_enabled()}
        for phase in scalers.keys() & (saved := state.get("scaler", {})).get("scales", {}):
            since = saved["finite_since"][phase] % scalers[phase].get_growth_interval()
            own = {"scale": saved["scales"][phase], "_growth_tracker": since}
            scalers[phase].load_state_dict(scalers[phase].state_dict() | own)
        for phase in given:
            load_state_by_name(self.optimizers[phase], given[phase], self._parameters[phase], where=where)
        anew = [phase for phase in phases if phase not in given or (self.iteration and not given[phase]["states"])]
        return [f"{where} holds no state of the optimizer of {' and '.join(anew)}, which begins anew"] if anew else []


@contextmanager
def evaluation_mode(networks: Networks) -> Iterator[None]:
    """Networks in evaluation mode for the length of a with block, then as they were."""
    modes = [(network, network.training) for network in networks.values()]
    try:
        for network, _ in modes:
            network.eval()
        yield
    finally:
        for network, was_training in modes:
            network.train(was_training)
