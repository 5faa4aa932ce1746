"""Measures Tacotron 2's decoder: steps a second of the full-size model with random weights, by batch and precision.

    bash scripts/benchmark_decoder.sh [--cuda] [--batch-sizes 1 4 8] [--steps 400] [--symbols 128]
    bash scripts/benchmark_decoder.sh --training [--cuda] [--batch-sizes 4] [--steps 400] [--symbols 128] [--repeats 3]

Every step makes one mel frame of each utterance. On a GPU a step runs as a CUDA graph, as in inference.py. With
``--training`` it compares forward and backward pass of teacher forcing with the same loop by plain autograd, in turns.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.profiler import profile

from common.cli import ArgumentParser, positive_int, run
from common.config import AudioConfig
from common.precision import autocast
from common.synthesis import Controls
from scripts.benchmarks.machine import choose_device, machine
from tacotron2.decoder import Decoded, Decoder
from tacotron2.model import ModelConfig, Tacotron2

_WARM_UP_STEPS = 20
_NEVER = -20.0  # logit of a gate that does not fire
_SMALL = replace(
    ModelConfig(),
    symbols_embedding_dim=128,
    encoder_embedding_dim=128,
    attention_rnn_dim=256,
    attention_dim=64,
    attention_location_n_filters=8,
    decoder_rnn_dim=256,
    prenet_dim=64,
    postnet_embedding_dim=128,
)
_Decode = Callable[[Decoder, Tensor, Tensor, Tensor], Decoded]


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


def plain_decode(decoder: Decoder, memory: Tensor, padding: Tensor, frames: Tensor) -> Decoded:
    """`Decoder.forward` by plain autograd: ordinary LSTM cells, and the prenet and location layers outside the loop."""
    layer, cell = decoder.attention_layer, decoder.attention_rnn
    prenet = decoder.prenet(F.pad(frames, (1, -1)).permute(2, 0, 1), None)
    processed = layer.memory_layer(memory)
    conv = layer.location_layer.location_conv.conv
    location = layer.location_layer.folded_weight().view(-1, 2, conv.kernel_size[0])
    context = memory.new_zeros(memory.size(0), memory.size(2))
    weights = total = memory.new_zeros(padding.shape, dtype=torch.float32)
    attended = decided = None
    states, alignments = [], []
    for step in prenet:
        attended = cell(torch.cat([step, context], 1), attended)
        attended = (decoder.attention_dropout(attended[0]), attended[1])
        history = torch.stack([weights, total], 1).to(memory.dtype)
        located = F.conv1d(history, location, padding=conv.padding[0]).transpose(1, 2)
        energies = layer.v(torch.tanh(layer.query_layer(attended[0]).unsqueeze(1) + located + processed)).squeeze(2)
        weights = torch.softmax(energies.float().masked_fill(padding, float("-inf")), 1)
        total = total + weights
        context = torch.bmm(weights.to(memory.dtype).unsqueeze(1), memory).squeeze(1)
        decided = decoder.decoder_rnn(torch.cat([attended[0], context], 1), decided)
        decided = (decoder.decoder_dropout(decided[0]), decided[1])
        states.append(torch.cat([decided[0], context], 1))
        alignments.append(weights)
    states = torch.stack(states, 1)
    mel = decoder.linear_projection(states).transpose(1, 2)
    return Decoded(mel, decoder.gate_layer(states).squeeze(2), torch.stack(alignments, 1))


def training_step(decode: _Decode, decoder: Decoder, inputs: tuple[Tensor, ...]) -> tuple[float, float]:
    """Seconds of the forward and of the backward pass."""
    decoder.zero_grad(set_to_none=True)
    start = time.perf_counter()
    out = decode(decoder, *inputs)
    loss = out.mel.square().mean() + out.gate_logits.square().mean()
    loss.item()  # waits for the device
    forward = time.perf_counter() - start
    loss.backward()
    float(decoder.attention_rnn.weight_hh.grad[0, 0])
    return forward, time.perf_counter() - start - forward


def kept_bytes(decode: _Decode, decoder: Decoder, inputs: tuple[Tensor, ...]) -> int:
    """What the forward pass allocates and keeps for the backward pass."""
    with profile(profile_memory=True) as measured:
        out = decode(decoder, *inputs)
    del out  # held until here
    name = "self_device_memory_usage" if inputs[0].device.type == "cuda" else "self_cpu_memory_usage"
    return sum(getattr(event, name) for event in measured.key_averages() if event.key != "[memory]")


def compare_training(args: argparse.Namespace, device: torch.device) -> None:
    """Print time and memory of the decoder's training step, ours and by plain autograd."""
    print("model   batch   form  forward s  backward s  total s  kept MiB   gain")
    forms: dict[str, _Decode] = {"ours": lambda decoder, *inputs: decoder(*inputs, None), "plain": plain_decode}
    for name, config in (("full", ModelConfig()), ("small", _SMALL)):
        for size in args.batch_sizes:
            torch.manual_seed(0)
            decoder = Tacotron2(config).decoder.train().to(device)
            memory = torch.randn(size, args.symbols, config.encoder_embedding_dim, device=device, requires_grad=True)
            padding = torch.zeros(size, args.symbols, dtype=torch.bool, device=device)
            inputs = memory, padding, torch.randn(size, config.n_mel_channels, args.steps, device=device)
            kept = {form: kept_bytes(decode, decoder, inputs) / 2**20 for form, decode in forms.items()}
            times: dict[str, list[tuple[float, float]]] = {form: [] for form in forms}
            for _ in range(args.repeats):  # in turns, so that other load on the machine slows both
                for form, decode in forms.items():
                    times[form].append(training_step(decode, decoder, inputs))
            totals = {form: statistics.median(map(sum, rows)) for form, rows in times.items()}
            for form, rows in times.items():
                forward, backward = (statistics.median(column) for column in zip(*rows))
                figures = f"{forward:>11.2f}{backward:>12.2f}{totals[form]:>9.2f}{kept[form]:>10.0f}"
                print(f"{name:<7}{size:>6}{form:>7}{figures}{totals['plain'] / totals[form]:>7.2f}", flush=True)


def main() -> None:
    """Print the table."""
    parser = ArgumentParser(prog="benchmark_decoder", description=__doc__.splitlines()[0])
    parser.add_argument("--cuda", action="store_true", help="measure the GPU")
    parser.add_argument("--training", action="store_true", help="compare the training step with plain autograd")
    parser.add_argument("--batch-sizes", type=positive_int, nargs="+", default=[1, 4, 8], help="utterances at a time")
    parser.add_argument("--steps", type=positive_int, default=400, help="that are timed, for each line")
    parser.add_argument("--symbols", type=positive_int, default=128, help="of each text")
    parser.add_argument("--repeats", type=positive_int, default=3, help="measurements of --training; the median counts")
    args = parser.parse_args()
    device = choose_device(cuda=args.cuda)
    print(f"{machine(cuda=args.cuda)}; torch {torch.__version__}; {args.steps} steps for {args.symbols} symbols")
    if args.training:
        compare_training(args, device)
        return
    audio = AudioConfig()
    network = endless_model().to(device)
    print(f"{'precision':<10}{'batch':>6}{'steps/s':>9}{'frames/s':>10}{'x real time':>13}")
    for label, dtype in (("float32", None), ("bfloat16", torch.bfloat16)):
        for size in args.batch_sizes:
            tokens = torch.randint(1, ModelConfig.n_symbols, (size, args.symbols), device=device)
            rate = args.steps / seconds(network, tokens, n_steps=args.steps, dtype=dtype)
            real_time = rate * audio.hop_length / audio.sampling_rate  # of each utterance
            print(f"{label:<10}{size:>6}{rate:>9.0f}{rate * size:>10.0f}{real_time:>13.2f}", flush=True)


if __name__ == "__main__":
    run(main)
