"""FastPitch's losses: the published values, with the masks that lengths give, and their gradients."""

from pathlib import Path

import pytest
import torch
from golden_files import listed, read_golden
from safetensors.torch import load_file
from torch import Tensor

from common.nn.layers import mask_from_lengths
from fastpitch.arg_parser import LossScales
from fastpitch.loss_function import FastPitchObjective, sums_of_errors
from fastpitch.model import FastPitchBatch, FastPitchOutput

FOLDER = "fastpitch_1_0"
PHASE = "fastpitch"
MODELS = listed("fastpitch_1_0/index.json", "models")


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
    counts = FastPitchObjective().counts(PHASE, batch)
    return {name: (total / counts[name]).item() for name, total in sums_of_errors(out, batch).items()}


@pytest.mark.parametrize("name", MODELS)
def test_losses_are_the_published_ones_but_for_the_mask(folder: Path, name: str):
    """Two steps: the slow truth with the original's mask gives the golden, with the mask from lengths it gives ours."""
    checked = 0
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
            total = FastPitchObjective(LossScales(**scales)).total(original, epoch=1)
            assert golden["float64"]["loss"] == pytest.approx(total, rel=1e-6)
            factor = golden["float64"]["meta"]["loss"] / golden["float64"]["loss"]  # batch size where sums are logged
            for term, value in golden["float64"]["meta"].items():
                assert value == pytest.approx(factor * (original | {"loss": total})[term], rel=1e-6), term
            checked += 1
    assert checked
