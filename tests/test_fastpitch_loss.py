"""FastPitch's losses: published values, one update however a batch is cut, figures and plots of alignment."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from golden_files import listed, read_golden
from safetensors.torch import load_file
from test_fastpitch import WITHOUT_DROPOUT, part, published, recordings, run_forward, small
from torch import Tensor
from toy import split, toy_engine

from common.config import AudioConfig
from common.data.batch import join_batches
from common.nn.layers import mask_from_lengths
from fastpitch.arg_parser import LossScales, TrainingOptions
from fastpitch.config import ModelConfig
from fastpitch.discriminator import WINDOW, MelDiscriminator, cut_windows
from fastpitch.loss_function import FastPitchObjective, sums_of_errors
from fastpitch.model import FastPitchBatch, FastPitchOutput

PHASE = "fastpitch"
MODELS = listed("fastpitch_1_0/index.json", "models")
MODELS_1_1 = listed("fastpitch_1_1/index.json", "models")
AT_ONCE = LossScales(kl_loss_start_epoch=0, kl_loss_warmup_epochs=0)


def slow_losses(out: FastPitchOutput, batch: FastPitchBatch, mel_mask: Tensor) -> dict[str, float]:
    """The losses in float64, one element after another; ``mel_mask`` (B, n_mels, F) says which mel elements count."""
    mel_terms = [
        (out.mel[index].double().item() - batch.mels[index].double().item()) ** 2
        for index in map(tuple, mel_mask.nonzero().tolist())
    ]
    sums = dict.fromkeys(("duration_predictor_loss", "pitch_loss", "duration_error", "pitch_error"), 0.0)
    n_tokens = 0
    for item, length in enumerate(batch.token_lengths.tolist()):
        for token in range(length):
            duration = batch.durations[item, token].double()
            pitch_error = out.pitch[item, token].double() - batch.pitch[item, token].double()
            sums["duration_predictor_loss"] += (
                float(out.log_durations[item, token].double() - (duration + 1).log()) ** 2
            )
            sums["duration_error"] += abs(float(out.durations[item, token].double() - duration))
            sums["pitch_loss"] += float(pitch_error) ** 2
            sums["pitch_error"] += abs(float(pitch_error))
            n_tokens += 1
    return {"mel_loss": sum(mel_terms) / len(mel_terms)} | {name: value / n_tokens for name, value in sums.items()}


def golden_batch(given: dict[str, Tensor]) -> FastPitchBatch:
    return FastPitchBatch(
        names=tuple(f"item {index}" for index in range(len(given["in.text_lens"]))),
        tokens=given["in.text"],
        token_lengths=given["in.text_lens"],
        mels=given["in.mel_tgt"],
        mel_lengths=given["in.mel_lens"],
        durations=given.get("in.dur_tgt"),
        pitch=given.get("in.pitch_tgt"),
    )


def golden_output(tensors: dict[str, Tensor], batch: FastPitchBatch) -> FastPitchOutput:
    """A published output, cut to or filled with zeros up to the target's frames as the original does."""
    mel = tensors["out.mel_out"].transpose(1, 2)
    mel = torch.nn.functional.pad(mel, (0, batch.mels.size(2) - mel.size(2)))
    return FastPitchOutput(
        mel=mel,
        lengths=tensors["out.dec_mask"].sum((1, 2)),
        durations=tensors["out.dur_pred"],
        pitch=tensors["out.pitch_pred"],
        log_durations=tensors["out.log_dur_pred"],
        target_durations=batch.durations,
        target_pitch=batch.pitch,
    )


def our_losses(out: FastPitchOutput, batch: FastPitchBatch) -> dict[str, float]:
    counts = objective().counts(PHASE, batch)
    return {name: (total / counts[name]).item() for name, total in sums_of_errors(out, batch).items()}


@pytest.mark.parametrize("name", MODELS)
def test_losses_are_the_published_ones_but_for_the_mask(goldens: Path, name: str):
    """Two steps: the slow truth with the original's mask gives the golden, with the mask from lengths it gives ours."""
    folder, checked = goldens / "fastpitch_1_0", 0
    for case in read_golden(folder / "index.json", "models", name, "cases"):
        if case["kind"] != "forward":
            continue
        batch = golden_batch(load_file(folder / case["inputs_file"]))
        out = golden_output(load_file(folder / case["file"]), batch)
        original = slow_losses(out, batch, batch.mels != 0)
        valid = mask_from_lengths(batch.mel_lengths, batch.mels.size(2)).unsqueeze(1).expand_as(batch.mels)
        assert our_losses(out, batch) == pytest.approx(slow_losses(out, batch, valid), rel=1e-6)
        for golden in case["losses"].values():
            scales = {"dur_predictor_loss_scale": 1.0, "pitch_predictor_loss_scale": 1.0} | golden["scales"]
            total = objective(LossScales(**scales)).total(original, epoch=1)
            assert golden["float64"]["loss"] == pytest.approx(total, rel=1e-6)
            factor = golden["float64"]["meta"]["loss"] / golden["float64"]["loss"]  # batch size where sums are logged
            for term, value in golden["float64"]["meta"].items():
                assert value == pytest.approx(factor * (original | {"loss": total})[term], rel=1e-6), term
            checked += 1
    assert checked


def objective(scales: LossScales = AT_ONCE, *, energy: bool = True, **others: bool) -> FastPitchObjective:
    model = ModelConfig(energy_conditioning=energy, learned_alignment=True, **others)
    return FastPitchObjective(TrainingOptions(losses=scales, architecture=model), AudioConfig())


@pytest.mark.parametrize("name", MODELS_1_1)
def test_losses_of_1_1_are_the_published_ones_but_for_the_mask(goldens: Path, name: str):
    folder = goldens / "fastpitch_1_1"
    network, cases = published(folder, name)
    case = next(case for case in cases if case["name"] == "forward")
    given = load_file(folder / case["inputs_file"])
    frames, prior = given["in.pitch_dense"][:, 0], given["in.attn_prior"]
    others = {"pitch_frames": frames, "prior": prior, "speakers": given.get("in.speaker")}
    batch = replace(golden_batch(given), durations=None, pitch=None, **others)
    with torch.no_grad():
        out = run_forward(network, given, case, 0)
        has_energy = network.energy_emb is not None
        terms = objective(energy=has_energy).evaluate({"fastpitch": network}, batch)
    values = {key: float(term.total / term.count) for key, term in terms.items()}
    valid = mask_from_lengths(batch.mel_lengths).unsqueeze(1).expand_as(batch.mels)
    slow = (out.mel.double() - batch.mels.double())[valid].square().mean()
    assert values["mel_loss"] == pytest.approx(float(slow), rel=1e-6)
    # The original's mask of mels leaves out elements that happen to be zero.
    values["mel_loss"] = float((out.mel.double() - batch.mels.double())[batch.mels != 0].square().mean())
    values["dur_error"] = values["duration_error"]
    assert values["kl_loss"] == pytest.approx(case["attention_binarization_loss_float64"], rel=3e-6)
    for golden in case["losses"].values():
        scales = {"dur_predictor_loss_scale": 1.0, "pitch_predictor_loss_scale": 1.0, "attn_loss_scale": 1.0}
        scales |= {"energy_predictor_loss_scale": 0.1} | golden["scales"]
        total = objective(LossScales(**scales), energy=has_energy).total(values, epoch=1)
        assert total == pytest.approx(golden["float64"]["loss"], rel=1e-6)
        factor = golden["float64"]["meta"]["loss"] / golden["float64"]["loss"]  # batch size where sums are logged
        for term, value in golden["float64"]["meta"].items():
            assert value == pytest.approx(factor * (values | {"loss": total})[term], rel=3e-6), term


def test_the_weight_of_binarization_warms_up_as_published(goldens: Path):
    cases = read_golden(goldens / "fastpitch_1_1" / "alignment" / "kl_weight_schedule.json")
    assert cases
    for case in cases:
        epoch, expected = case.pop("epoch"), case.pop("kl_weight")
        assert LossScales(**case).kl_loss_scale(epoch) == pytest.approx(expected), (case, epoch)


def discriminator() -> MelDiscriminator:
    torch.manual_seed(1)
    return MelDiscriminator()


def train(
    cut: tuple[int, ...], *, adversarial: bool, steps: int = 2
) -> tuple[dict[str, torch.Tensor], list[dict[str, float]]]:
    """Weights and terms after some updates on 8 utterances, cut into micro-batches of these sizes."""
    networks = {"fastpitch": small(**WITHOUT_DROPOUT)} | ({"mel_discriminator": discriminator()} if adversarial else {})
    whole = recordings((9, 1, 23, 4, 6, 12, 3, 17), (40, 7, 90, 4, 33, 25, 60, 50))
    utterances = [replace(part(whole, item), window=torch.tensor([item / 8])) for item in range(8)]
    batches = [join_batches(rows) for rows in split(utterances, cut)]
    engine = toy_engine(networks, objective=objective(adversarial=adversarial), learning_rate=1e-3, eps=1e-3)
    terms = [engine.step(batches, epoch=1).terms for _ in range(steps)]
    return {f"{n}.{k}": v for n, network in networks.items() for k, v in network.state_dict().items()}, terms


@pytest.mark.parametrize("adversarial", [False, True])
@pytest.mark.parametrize("cut", [(1,) * 8, (3, 5)])
def test_one_global_batch_is_one_update_however_it_is_cut(cut: tuple[int, ...], adversarial: bool):
    (weights, terms), (cut_weights, cut_terms) = (train(one, adversarial=adversarial) for one in ((8,), cut))
    assert adversarial == ({"d_loss", "adversarial_loss", "feature_loss"} <= terms[0].keys())
    assert terms[0]["attn_loss"] != terms[1]["attn_loss"]
    for ours, theirs in zip(terms, cut_terms):
        assert theirs == pytest.approx(ours, rel=2e-5)
    for key, value in weights.items():
        torch.testing.assert_close(cut_weights[key], value, rtol=1e-4, atol=2e-6, msg=key)


def test_a_discriminator_sees_windows_of_what_is_valid_and_sharpens_the_mels_alone():
    mel, lengths = torch.arange(1.0, 201).expand(3, 2, 200), torch.tensor([200, 100, 30])
    windows = cut_windows(mel, lengths, torch.tensor([0.999, 0.5, 0.7]))
    assert windows.shape == (3, 2, WINDOW)
    assert windows[0, 0].tolist() == list(range(137, 201)) and windows[1, 1, 0] == 1 + 37 // 2
    assert windows[2, 0].tolist() == [*range(1, 31), *[0] * 34]
    network, judge = small(**WITHOUT_DROPOUT), discriminator()
    batch = replace(recordings((9, 23), (70, 90)), window=torch.tensor([0.0, 1 - 1e-6]))
    networks, ours = {"fastpitch": network, "mel_discriminator": judge}, objective(adversarial=True)
    sums = ours.numerators("fastpitch", networks, batch)
    (sums["adversarial_loss"] + sums["feature_loss"]).backward()
    taught = {key for key, parameter in network.named_parameters() if parameter.grad is not None}
    assert "proj.weight" in taught and not any(key.startswith(("duration", "pitch_predictor")) for key in taught)
    with torch.no_grad():
        out = network(batch)
        scored = (judge(torch.stack([x[0, :, :64], x[1, :, 26:90]])) for x in (batch.mels, out.mel))
        real, made = (one.features[0] for one in scored)
    distances = [(a - b).abs().mean() for a, b in zip(real, made)]
    torch.testing.assert_close(sums["feature_loss"] / 2, torch.stack(distances).sum())
    torch.testing.assert_close(sums["adversarial_loss"] / 2, (1 - made[-1]).square().mean())
    d_loss = ours.numerators("discriminator", networks, batch)["d_loss"] / 2
    torch.testing.assert_close(d_loss, (1 - real[-1]).square().mean() + made[-1].square().mean())
