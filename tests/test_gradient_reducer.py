"""Gradients of two processes against those of one: accumulation, phases, frozen networks, and a graph that is kept."""

from collections.abc import Sequence

import pytest
import torch
from ranks import run_ranks
from toy import KeepingObjective, ToyBatch, ToyObjective, toy_collate, toy_engine, toy_networks, toy_utterances

from common.distributed import Ranks
from common.training import Networks, Objective, Phase, gradient_reducer

N_UTTERANCES, STEPS = 12, 3


class FrozenCriticObjective(ToyObjective):
    """The critic is called by the generator's phase alone, so that it is always frozen."""

    phases = (Phase("generator", ("generator",)),)


class PartlyUsedObjective(ToyObjective):
    """One phase updates both networks, but its loss needs the generator alone."""

    phases = (Phase("generator", ("critic", "generator")),)

    def weights(self, phase: str, *, epoch: int) -> dict[str, float]:
        return {"l1": 1.0}

    def numerators(self, phase: str, networks: Networks, batch: ToyBatch) -> dict[str, torch.Tensor]:
        error = networks["generator"](batch.inputs) - batch.targets
        mask = torch.arange(error.size(1)) < batch.lengths.unsqueeze(1)
        return {"l1": (error.abs() * mask).float().sum(), "g_loss": error.new_zeros(()), "bias": error.new_zeros(())}


OBJECTIVES = {
    "two phases": ToyObjective,
    "a kept graph": KeepingObjective,
    "a frozen critic": FrozenCriticObjective,
    "a network without gradients": PartlyUsedObjective,
}
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


def exchange(ranks: Ranks) -> dict[str, list]:
    """Sizes of all exchanges so far at each point of an update of three parameters, and the gradients it ends with."""
    sizes: list[int] = []
    seen: dict[str, list] = {}
    all_reduce = torch.distributed.all_reduce

    def count(tensor: torch.Tensor, **options):
        sizes.append(tensor.numel())
        return all_reduce(tensor, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.distributed, "all_reduce", count)
        patch.setattr(gradient_reducer, "_BUCKET_BYTES", 8)
        weights = [torch.nn.Parameter(torch.ones(2)) for _ in range(3)]
        reducer = gradient_reducer.GradientReducer(weights, ranks)
        x = float(1 + ranks.rank)
        (weights[0] * x).sum().backward()
        seen["micro-batch before the last"] = list(sizes)
        reducer.arm()
        (weights[0] * x + weights[2] * x).sum().backward()
        seen["last backward pass"] = list(sizes)
        reducer.finish()
        seen["finish"] = list(sizes)
        seen["gradients"] = [weight.grad.tolist() for weight in weights]
        reducer.finish()
        (weights[0] * x).sum().backward()
        seen["backward pass of the next update"] = list(sizes)
    return seen


_PROGRAM = """
import sys
import torch
torch.set_num_threads(1)
from common import distributed
from common.training import gradient_reducer
from test_gradient_reducer import ACCUMULATIONS, OBJECTIVES, exchange, learn
gradient_reducer._BUCKET_BYTES = 64  # several buckets, as large networks have
ranks = distributed.start(cuda=False)
share = ((0, 5), (5, 12))[ranks.rank]
results = {
    f"{name} {n}": learn(objective(), n, ranks=ranks, share=share)
    for name, objective in OBJECTIVES.items()
    for n in ACCUMULATIONS
}
results["traffic"] = exchange(ranks)
torch.save(results, f"{sys.argv[1]}/{ranks.rank}.pt")
distributed.stop()
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
        if name == "a network without gradients":  # for which the reducer makes zeros, so that processes agree
            extra = {key for key in found if key.startswith("gradient generator critic")}
            assert set(found) - extra == set(expected) and not any(found[key].any() for key in extra)
        else:
            assert set(found) == set(expected)
        for key, value in expected.items():
            torch.testing.assert_close(
                found[key], value, atol=1e-6, rtol=1e-4, msg=lambda text, key=key: f"{key}: {text}"
            )


def test_gradients_are_exchanged_in_the_last_backward_pass_alone_and_absent_ones_are_zero(of_ranks: list):
    for traffic in (rank["traffic"] for rank in of_ranks):
        assert traffic["micro-batch before the last"] == []
        # The last bucket's parameter has its gradient, the one before it never gets one.
        assert traffic["last backward pass"] == [2]
        assert traffic["finish"] == traffic["backward pass of the next update"] == [2, 2, 2]
        assert traffic["gradients"] == [[6.0, 6.0], [0.0, 0.0], [3.0, 3.0]]


def test_one_process_exchanges_nothing():
    weight = torch.nn.Parameter(torch.ones(2))
    reducer = gradient_reducer.GradientReducer([weight], Ranks())
    reducer.arm()
    (3 * weight).sum().backward()
    reducer.finish()
    assert weight.grad.tolist() == [3.0, 3.0]
