"""Gradients of two processes against those of one: accumulation, phases, frozen networks, and a graph that is kept."""

from collections.abc import Sequence

import pytest
import torch
from ranks import run_ranks
from toy import KeepingObjective, ToyBatch, ToyObjective, toy_collate, toy_engine, toy_networks, toy_utterances

from common.distributed import Ranks
from common.training.objective import Objective, Phase

N_UTTERANCES, STEPS = 12, 3


class FrozenCriticObjective(ToyObjective):
    """The critic is called by the generator's phase alone, so that it is always frozen."""

    phases = (Phase("generator", ("generator",)),)


OBJECTIVES = {"two phases": ToyObjective, "a kept graph": KeepingObjective, "a frozen critic": FrozenCriticObjective}
ACCUMULATIONS = (1, 2, 3)


def micro_batches(first: int, last: int, *, count: int, seed: int) -> list[ToyBatch]:
    """Utterances ``first`` to ``last`` of a global batch in ``count`` micro-batches."""
    own = toy_utterances(N_UTTERANCES, seed=seed)[first:last]
    size = -(-len(own) // count)
    return [toy_collate(own[start : start + size]) for start in range(0, len(own), size)]


def learn(
    objective: Objective, accumulation: int, *, ranks: Ranks | None = None, share: Sequence[int] = (0, N_UTTERANCES)
) -> dict[str, torch.Tensor]:
    """Gradients of the last update, and the weights after it."""
    networks = toy_networks(seed=0 if ranks is None else ranks.rank)
    engine = toy_engine(networks, objective=objective, ranks=ranks, optimizer="adam")
    gradients: dict[str, torch.Tensor] = {}

    def remember(name: str) -> None:
        for network in next(phase for phase in objective.phases if phase.name == name).trains:
            for key, parameter in networks[network].named_parameters():
                if parameter.grad is not None:
                    gradients[f"gradient {name} {network}.{key}"] = parameter.grad.clone()

    for name, optimizer in engine.optimizers.items():
        optimizer.register_step_pre_hook(lambda *_, name=name: remember(name))
    for seed in range(STEPS):
        engine.step(micro_batches(*share, count=accumulation, seed=seed), epoch=1)
    weights = {f"{name}.{key}": v for name, network in networks.items() for key, v in network.state_dict().items()}
    return gradients | weights


def count_exchanges(accumulation: int, *, ranks: Ranks) -> int:
    """How many sums over processes an update of two phases makes."""
    engine = toy_engine(toy_networks(), ranks=ranks)
    batches = micro_batches(0, N_UTTERANCES, count=accumulation, seed=0)
    with torch.profiler.profile() as profile:
        engine.step(batches, epoch=1)
    return sum(event.name == "c10d::allreduce_" for event in profile.events())


class Normalized(torch.nn.Module):
    """A critic with spectral norm, whose power iteration starts from random vectors, in buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(8, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x.unsqueeze(2).expand(-1, -1, 8)).tanh().sum(2)


def learn_normalized(ranks: Ranks) -> dict[str, torch.Tensor]:
    """Weights and buffers of a critic with spectral norm after an update."""
    networks = toy_networks()
    torch.manual_seed(ranks.rank)
    networks["critic"] = Normalized()
    toy_engine(networks, ranks=ranks).step(micro_batches(0, N_UTTERANCES, count=2, seed=0), epoch=1)
    return networks["critic"].state_dict()


def evaluate_and_stop(ranks: Ranks, share: Sequence[int]) -> tuple[dict[str, float], bool]:
    """Validation's terms of this process's share, and whether all stop when the second process is asked to."""
    engine, own = toy_engine(toy_networks(), ranks=ranks), micro_batches(*share, count=2, seed=0)
    terms = engine.evaluate(own)
    return terms, engine.step(own, epoch=1, stop=ranks.rank == 1).stops


_PROGRAM = """
import sys
import torch
from common import distributed
from test_gradients import ACCUMULATIONS, OBJECTIVES, count_exchanges, evaluate_and_stop, learn, learn_normalized

torch.set_num_threads(1)
with distributed.processes(cuda=False) as ranks:
    share = ((0, 5), (5, 12))[ranks.rank]
    results = {
        f"{name} {n}": learn(objective(), n, ranks=ranks, share=share)
        for name, objective in OBJECTIVES.items()
        for n in ACCUMULATIONS
    }
    results["exchanges"] = [count_exchanges(n, ranks=ranks) for n in ACCUMULATIONS]
    results["normalized"] = learn_normalized(ranks)
    results["evaluated"], results["stop"] = evaluate_and_stop(ranks, share)
    torch.save(results, f"{sys.argv[1]}/{ranks.rank}.pt")
"""


@pytest.fixture(scope="module")
def of_ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, dict[str, torch.Tensor]]]:
    """What each of two processes learned in each case; the second began with other weights and has more utterances."""
    folder = tmp_path_factory.mktemp("ranks")
    run_ranks(_PROGRAM, folder)
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(2)]


@pytest.mark.parametrize("accumulation", ACCUMULATIONS)
@pytest.mark.parametrize("name", OBJECTIVES)
def test_two_processes_have_the_gradients_and_weights_of_one(of_ranks: list, name: str, accumulation: int):
    expected = learn(OBJECTIVES[name](), 1)
    for found in (rank[f"{name} {accumulation}"] for rank in of_ranks):
        assert set(found) == set(expected)
        for key, value in expected.items():
            torch.testing.assert_close(
                found[key], value, atol=1e-6, rtol=1e-4, msg=lambda text, key=key: f"{key}: {text}"
            )


def test_all_processes_evaluate_the_whole_and_stop_together(of_ranks: list):
    expected = toy_engine(toy_networks()).evaluate(micro_batches(0, N_UTTERANCES, count=1, seed=0))
    for rank in of_ranks:
        assert rank["evaluated"] == pytest.approx(expected, rel=1e-5)
        assert rank["stop"] == 1


def test_gradients_are_exchanged_in_the_last_micro_batch_alone(of_ranks: list):
    for exchanges in (rank["exchanges"] for rank in of_ranks):
        # The counts of all phases, then in each phase the gradients and the numerators.
        assert exchanges == [5] * len(ACCUMULATIONS)


def test_buffers_are_the_same_in_all_processes_from_the_start(of_ranks: list):
    """`DistributedDataParallel` without ``broadcast_buffers`` leaves them as they are."""
    first, second = (rank["normalized"] for rank in of_ranks)
    assert any(key.endswith("_u") for key in first)
    assert all(torch.equal(value, second[key]) for key, value in first.items())
