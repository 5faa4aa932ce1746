"""The engine's promises: toy objectives of two phases, two processes against one, and mixed precision on CPUs."""

import argparse
from collections.abc import Sequence

import pytest
import tiny_harmonic
import tiny_jasper
import tiny_tacotron2
import tiny_vocoder
import tiny_voice
import tiny_waveglow
import torch
from ranks import run_ranks
from torch import nn
from toy import (
    KeepingObjective,
    ToyBatch,
    ToyObjective,
    split,
    toy_collate,
    toy_engine,
    toy_networks,
    toy_utterances,
    weights,
)

from common import precision
from common.cli import ComputingOptions
from common.data.batch import Batch
from common.distributed import Ranks
from common.errors import InputError
from common.options import add_options, read_options
from common.precision import Precision, prepare_computing
from common.training.objective import Networks, Objective, Phase
from fastpitch.model import FastPitch


def train(cut: tuple[int, ...], *, steps: int = 3, **options) -> tuple[dict, list[dict[str, float]]]:
    """Weights and terms after some updates on 16 utterances, cut into micro-batches of these sizes."""
    networks = toy_networks()
    engine = toy_engine(networks, **options)
    losses = []
    for step in range(steps):
        utterances = toy_utterances(16, seed=step)
        micro_batches = [toy_collate(part) for part in split(utterances, cut)]
        losses.append(engine.step(micro_batches, epoch=1).terms)
    return weights(networks), losses


def assert_same_training(first: tuple, second: tuple, *, atol: float = 1e-6) -> None:
    for ours, theirs in zip(first[1], second[1]):
        assert ours == pytest.approx(theirs, rel=1e-4, abs=atol)
    for name, value in first[0].items():
        torch.testing.assert_close(value, second[0][name], atol=atol, rtol=1e-4)


def test_a_step_equals_a_plainly_written_adversarial_step():
    networks = toy_networks()
    generator, critic = networks["generator"], networks["critic"]
    g_optimizer = torch.optim.Adam(generator.parameters(), 0.01, betas=(0.9, 0.98), eps=1e-9)
    d_optimizer = torch.optim.Adam(critic.parameters(), 0.01, betas=(0.9, 0.98), eps=1e-9)
    for step in range(3):
        utterances = toy_utterances(16, seed=step)
        frames = sum(int(u.lengths) for u in utterances)
        d_loss = sum(
            ((1 - critic(u.targets)) ** 2).sum() + (critic(generator(u.inputs).detach()) ** 2).sum() for u in utterances
        )
        d_optimizer.zero_grad()
        (d_loss / frames).backward()
        d_optimizer.step()
        g_loss = sum(((1 - critic(generator(u.inputs))) ** 2).sum() for u in utterances) / frames
        l1 = sum((generator(u.inputs) - u.targets).abs().sum() for u in utterances) / frames
        g_optimizer.zero_grad()
        (0.5 * g_loss + 2.0 * l1).backward()
        g_optimizer.step()
    plain = weights(networks)
    ours, losses = train((16,))
    for name, value in plain.items():
        torch.testing.assert_close(ours[name], value, atol=1e-6, rtol=1e-4)
    assert losses[-1]["l1"] == pytest.approx(l1.item(), rel=1e-4)


@pytest.mark.parametrize("cut", [(4, 4, 4, 4), (1,) * 16, (2, 9, 5)])
@pytest.mark.parametrize("optimizer", ["adam", "lamb"])
def test_what_a_step_learns_does_not_depend_on_how_the_batch_is_cut(cut: tuple[int, ...], optimizer: str):
    assert_same_training(train((16,), optimizer=optimizer), train(cut, optimizer=optimizer))


class Poisoned(ToyObjective):
    """Gives a loss of NaN whenever a batch holds utterance u0."""

    def numerators(self, phase: str, networks: Networks, batch: Batch) -> dict[str, torch.Tensor]:
        terms = super().numerators(phase, networks, batch)
        bad = "u0" in batch.names and phase == "generator"
        return {name: value * float("nan") if bad else value for name, value in terms.items()}


def test_a_loss_that_is_not_finite_skips_that_phase_only_and_leaves_its_statistics_as_they_were():
    networks = toy_networks()
    networks["generator"].register_buffer("seen", torch.zeros(1))

    def count(module: nn.Module, args: tuple, out: torch.Tensor) -> None:
        module.seen += 1

    engine = toy_engine(networks, objective=Poisoned())
    before = weights(networks)
    handle = networks["generator"].register_forward_hook(count)
    result = engine.step([toy_collate(toy_utterances(4))], epoch=1)
    handle.remove()
    after = weights(networks)
    assert result.skipped == ("generator",)
    assert after.pop("generator.seen").item() == 1  # the discriminator's phase saw it, the skipped one took its back
    assert all(torch.equal(before[k], after[k]) for k in after if k.startswith("generator"))
    assert not all(torch.equal(before[k], after[k]) for k in after if k.startswith("critic"))
    assert engine.step([toy_collate(toy_utterances(8)[4:])], epoch=1).skipped == ()


def test_ten_skipped_steps_in_a_row_end_the_run_and_name_the_utterances():
    engine = toy_engine(toy_networks(), objective=Poisoned())
    bad = [toy_collate(toy_utterances(2))]
    for _ in range(9):
        engine.finish(engine.step(bad, epoch=1))
    with pytest.raises(InputError, match=r"10 updates in a row.*at iteration 10 with u0, u1;"):
        engine.finish(engine.step(bad, epoch=1))


@pytest.mark.parametrize("same_shapes", [True, False])
def test_every_network_is_compiled_for_one_shape_or_for_any(same_shapes: bool, monkeypatch: pytest.MonkeyPatch):
    compiled: list[tuple[nn.Module, dict]] = []
    monkeypatch.setattr(nn.Module, "compile", lambda network, **options: compiled.append((network, options)))
    networks = toy_networks()
    toy_engine(networks, compile=True, same_shapes=same_shapes)
    assert compiled == [(one, {"dynamic": None if same_shapes else True}) for one in networks.values()]


def test_clipping_bounds_the_gradient_that_the_optimizer_sees():
    networks, seen = toy_networks(), []
    engine = toy_engine(networks, grad_clip_thresh=0.01)
    for optimizer in engine.optimizers.values():
        optimizer.register_step_pre_hook(
            lambda one, *_: seen.append(torch.nn.utils.get_total_norm([p.grad for p in one.param_groups[0]["params"]]))
        )
    result = engine.step([toy_collate(toy_utterances(4))], epoch=1)
    assert all(norm > 0.01 for norm in result.grad_norms.values())
    assert seen == pytest.approx([0.01, 0.01], rel=1e-4)


def test_float16_losses_are_scaled_by_a_scale_that_is_halved_until_a_step_fits():
    full, half = train((4, 4, 4, 4)), train((4, 4, 4, 4), amp_dtype=torch.float16)
    assert_same_training(full, half, atol=5e-3)

    class Loud(ToyObjective):
        def weights(self, phase: str, *, epoch: int) -> dict[str, float]:
            return {name: 30 * weight for name, weight in super().weights(phase, epoch=epoch).items()}

    engine = toy_engine(toy_networks(), objective=Loud(), amp_dtype=torch.float16)
    skipped = [bool(engine.step([toy_collate(toy_utterances(4))], epoch=1).skipped) for _ in range(9)]
    assert skipped[0] and not skipped[-1]
    state = engine.state()
    assert all(scale < 2.0**16 for scale in state["scaler"]["scales"].values())
    resumed = toy_engine(toy_networks(), objective=Loud(), amp_dtype=torch.float16)
    resumed.load_state(state, where="x.pt")
    assert resumed.state()["scaler"] == state["scaler"]


def test_what_a_phase_keeps_gives_the_next_one_its_gradients():
    batches = [toy_collate(toy_utterances(16)[start : start + 8]) for start in (0, 8)]
    plain, keeping = toy_networks(), toy_networks()
    objective = KeepingObjective()
    for networks, engine in ((plain, toy_engine(plain)), (keeping, toy_engine(keeping, objective=objective))):
        before = weights(networks)
        terms = engine.step(batches, epoch=1).terms
        assert not torch.equal(before["generator.layers.0.weight"], networks["generator"].layers[0].weight)
        assert terms["l1"] > 0
    assert_same_training((weights(plain), []), (weights(keeping), []))
    names = [batch.names for batch in batches]
    # The next phase begins with the last micro-batch, so that no more than one graph need be kept.
    assert objective.order == [
        *(("discriminator", name) for name in names),
        *(("generator", name) for name in reversed(names)),
    ]


NOTE = "note: --amp: this processor has no bfloat16 instructions; computing in float32"


def parsed(*words: str) -> precision.Precision:
    parser = argparse.ArgumentParser()
    add_options(parser, ComputingOptions)
    return prepare_computing(read_options(parser.parse_args(words), ComputingOptions))


@pytest.mark.parametrize(
    ("words", "with_instructions", "without", "line"),
    [
        ((), None, None, None),
        (("--amp",), torch.bfloat16, None, NOTE),
        (("--amp", "--amp-dtype", "bfloat16"), torch.bfloat16, torch.bfloat16, None),
        (("--amp", "--amp-dtype", "float16"), torch.float16, torch.float16, None),
    ],
)
def test_a_cpu_computes_in_bfloat16_where_it_has_the_instructions_or_is_told_to(
    monkeypatch, capsys, words, with_instructions, without, line
):
    monkeypatch.setattr(precision, "keep_freed_memory", lambda: True)
    for has, dtype, expected in (("true", with_instructions, None), ("false", without, line)):
        monkeypatch.setenv("CPU_BFLOAT16", has)
        assert parsed(*words).amp_dtype is dtype
        err = capsys.readouterr().err
        assert len(err.splitlines()) == (expected is not None) and err.startswith(expected or "")


TOKENS, LENGTHS = torch.ones(2, 6, dtype=torch.int64), torch.tensor([6, 4])
# Networks, and what they make of something.
INFERENCES = {
    "FastPitch": (lambda: FastPitch(tiny_voice.MODEL), lambda network: network.infer(TOKENS, LENGTHS).mel),
    "Tacotron 2": (tiny_tacotron2.speaking_network, lambda network: network.infer(TOKENS, LENGTHS).mel),
    "HiFi-GAN": (
        lambda: tiny_vocoder.tiny_networks()["generator"],
        lambda network: network.infer(tiny_harmonic.speech_mel()),
    ),
    "WaveGlow": (tiny_waveglow.small_network, lambda network: network.infer(tiny_harmonic.speech_mel()[:, :6])),
    "Harmonic": (tiny_harmonic.small_network, lambda network: network.infer(tiny_harmonic.speech_mel())),
    "Jasper": (
        tiny_jasper.small_network,
        lambda network: network(torch.ones(2, 16, 40), torch.tensor([40, 30])).log_probs,
    ),
}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", INFERENCES)
def test_weights_that_are_cast_once_give_what_autocast_gives(name: str, dtype: torch.dtype):
    make, infer = INFERENCES[name]
    torch.manual_seed(0)
    network, mixed = make(), Precision(amp_dtype=dtype)
    network.prepare_for_inference()
    with torch.inference_mode(), mixed.autocast():
        expected = infer(network)
        mixed.cast_weights(network)
        result = infer(network)
    assert {weight.dtype for weight in network.parameters()} >= {dtype}
    assert torch.equal(result, expected)


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
from test_engine import ACCUMULATIONS, OBJECTIVES, count_exchanges, evaluate_and_stop, learn, learn_normalized

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
