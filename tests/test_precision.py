"""Mixed precision on CPUs: bfloat16 only where the processor has instructions for it, unless it is asked for."""

import argparse

import pytest
import tiny_harmonic
import tiny_jasper
import tiny_tacotron2
import tiny_vocoder
import tiny_voice
import tiny_waveglow
import torch

from common import precision
from common.cli import ComputingOptions
from common.options import add_options, read_options
from common.precision import Precision, prepare_computing
from fastpitch.model import FastPitch

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
