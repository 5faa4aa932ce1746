"""Measures Tacotron 2's decoder: steps a second of the full-size model with random weights, by batch and precision.

    bash scripts/benchmark.sh decoder [--cuda] [--batch-sizes 1 4 8] [--steps 400] [--symbols 128]

Every step makes one mel frame of each utterance. On a GPU a step runs as a CUDA graph, as in inference.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from common.cli import run
from common.config import AudioConfig
from common.options import option
from common.precision import autocast
from common.synthesis import Controls
from common.timing import Stopwatch
from scripts.benchmarks.measuring import Table, choose_device, machine, read_command
from tacotron2.model import ModelConfig, Tacotron2

_WARM_UP_STEPS = 20
_NEVER = -20.0  # logit of a gate that does not fire


@dataclass(frozen=True)
class DecoderOptions:
    """What is measured of the decoder."""

    cuda: bool = option(False, "measure the GPU")
    batch_sizes: tuple[int, ...] = option((1, 4, 8), "utterances at a time", least=1)
    steps: int = option(400, "that are timed, for each line", least=1)
    symbols: int = option(128, "of each text", least=1)


def endless_model() -> Tacotron2:
    """A full-size Tacotron 2 with random weights whose gate never fires."""
    torch.manual_seed(0)
    network = Tacotron2(ModelConfig()).eval()
    nn.init.constant_(network.decoder.gate_layer.linear_layer.bias, _NEVER)
    return network


@torch.inference_mode()
def seconds(network: Tacotron2, tokens: torch.Tensor, *, n_steps: int, dtype: torch.dtype | None) -> float:
    """Time of one utterance of ``n_steps`` frames for each row of tokens (B, L), the encoder and postnet included."""
    lengths = torch.full((len(tokens),), tokens.size(1), device=tokens.device)
    stopwatch = Stopwatch(tokens.device)
    with autocast(tokens.device, dtype):
        network.infer(tokens, lengths, Controls(max_decoder_steps=_WARM_UP_STEPS))
        with stopwatch.running():
            network.infer(tokens, lengths, Controls(max_decoder_steps=n_steps))
    return stopwatch.seconds


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    options = read_command(DecoderOptions, argv, prog="decoder", about=__doc__)
    device = choose_device(cuda=options.cuda)
    about = f"{options.steps} steps for {options.symbols} symbols"
    print(f"{machine(cuda=options.cuda)}; torch {torch.__version__}; {about}")
    audio, network, table = AudioConfig(), endless_model().to(device), Table()
    for label, dtype in (("float32", None), ("bfloat16", torch.bfloat16)):
        for size in options.batch_sizes:
            tokens = torch.randint(1, ModelConfig.n_symbols, (size, options.symbols), device=device)
            rate = options.steps / seconds(network, tokens, n_steps=options.steps, dtype=dtype)
            real_time = rate * audio.hop_length / audio.sampling_rate  # of each utterance
            row = {"precision": label, "batch": str(size), "steps/s": f"{rate:.0f}", "frames/s": f"{rate * size:.0f}"}
            table.add(row | {"x real time": f"{real_time:.2f}"})


if __name__ == "__main__":
    run(main)
