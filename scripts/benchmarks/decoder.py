"""Measures Tacotron 2's decoder: steps a second of the full-size model with random weights, by batch and precision.

    bash scripts/benchmark.sh decoder [--cuda] [--batch-sizes 1 4 8] [--steps 400] [--symbols 128]

Every step makes one mel frame of each utterance. On a GPU a step runs as a CUDA graph, as in inference.py.
"""

import time

import torch
from torch import nn

from common.cli import ArgumentParser, positive_int, run
from common.config import AudioConfig
from common.precision import autocast
from common.synthesis import Controls
from scripts.benchmarks.machine import choose_device, machine
from scripts.benchmarks.table import Table
from tacotron2.model import ModelConfig, Tacotron2

_WARM_UP_STEPS = 20
_NEVER = -20.0  # logit of a gate that does not fire


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
    with autocast(tokens.device, dtype):
        network.infer(tokens, lengths, Controls(max_decoder_steps=_WARM_UP_STEPS))
        start = time.perf_counter()
        # Reading a value waits for the device.
        float(network.infer(tokens, lengths, Controls(max_decoder_steps=n_steps)).mel.sum())
        return time.perf_counter() - start


def main() -> None:
    """Print the table."""
    parser = ArgumentParser(prog="decoder", description=__doc__.splitlines()[0])
    parser.add_argument("--cuda", action="store_true", help="measure the GPU")
    parser.add_argument("--batch-sizes", type=positive_int, nargs="+", default=[1, 4, 8], help="utterances at a time")
    parser.add_argument("--steps", type=positive_int, default=400, help="that are timed, for each line")
    parser.add_argument("--symbols", type=positive_int, default=128, help="of each text")
    args = parser.parse_args()
    device = choose_device(cuda=args.cuda)
    print(f"{machine(cuda=args.cuda)}; torch {torch.__version__}; {args.steps} steps for {args.symbols} symbols")
    audio = AudioConfig()
    network = endless_model().to(device)
    table = Table()
    for label, dtype in (("float32", None), ("bfloat16", torch.bfloat16)):
        for size in args.batch_sizes:
            tokens = torch.randint(1, ModelConfig.n_symbols, (size, args.symbols), device=device)
            rate = args.steps / seconds(network, tokens, n_steps=args.steps, dtype=dtype)
            real_time = rate * audio.hop_length / audio.sampling_rate  # of each utterance
            row = {"precision": label, "batch": str(size), "steps/s": f"{rate:.0f}", "frames/s": f"{rate * size:.0f}"}
            table.add(row | {"x real time": f"{real_time:.2f}"})


if __name__ == "__main__":
    run(main)
