"""The engine's promises, proved with a toy adversarial objective of two phases."""

import pytest
import torch
from torch import nn
from toy import KeepingObjective, ToyObjective, split, toy_collate, toy_engine, toy_networks, toy_utterances, weights

from common.data.batch import Batch
from common.errors import InputError
from common.training.objective import Networks


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
