"""Export FastPitch as a function of tensors, and run an exported file in place of the network."""

from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common.checkpoints.exported import Exports, Part, Quantization, Runner, Shape, Shapes, random_examples
from common.config import AudioConfig
from common.errors import InputError
from common.nn.layers import mask_from_lengths
from common.synthesis.utterances import Controls, MelOutput
from fastpitch.config import ModelConfig
from fastpitch.model import FastPitch
from fastpitch.prosody import SpeakerPitch, whole_frames


class _RowConvolution(nn.Module):
    """A convolution over one-row images, for which onnxruntime has fast memory layouts."""

    def __init__(self, conv: nn.Conv1d) -> None:
        super().__init__()
        self.weight = nn.Parameter(conv.weight.detach().unsqueeze(2))
        self.bias, self.padding = conv.bias, (0, int(conv.padding[0]))

    def forward(self, x: Tensor) -> Tensor:
        """x (B, in_channels, L) -> (B, out_channels, L)."""
        return F.conv2d(x.unsqueeze(2), self.weight, self.bias, padding=self.padding).squeeze(2)


class _ProductConvolution(nn.Module):
    """A convolution as one matrix product, which onnxruntime runs fast with dynamic 8-bit quantization.

    Neighbors are concatenated before the product, or its terms are added afterwards, whichever is smaller.
    """

    def __init__(self, conv: nn.Conv1d) -> None:
        super().__init__()
        self.size, self.padding, self.n_out = conv.kernel_size[0], int(conv.padding[0]), conv.out_channels
        self.adds_after = conv.out_channels < conv.in_channels
        taps = conv.weight.detach().unbind(2)  # (n_out, n_in) each
        self.weight = nn.Parameter(torch.cat(taps, dim=0 if self.adds_after else 1).T.contiguous())
        assert conv.bias is not None
        self.bias = conv.bias

    def forward(self, x: Tensor) -> Tensor:
        """x (B, in_channels, L) -> (B, out_channels, L)."""
        padded = F.pad(x.transpose(1, 2), (0, 0, self.padding, self.padding))
        length = padded.size(1) - self.size + 1
        if self.adds_after:
            terms = (padded @ self.weight).split(self.n_out, dim=2)
            total = self.bias + terms[0][:, :length]
            for place in range(1, self.size):
                total = total + terms[place][:, place : place + length]
            return total.transpose(1, 2)
        neighbors = [padded[:, place : place + length] for place in range(self.size)]
        return (torch.cat(neighbors, dim=2) @ self.weight + self.bias).transpose(1, 2)


def with_onnx_convolutions(network: FastPitch, *, as_products: bool) -> FastPitch:
    """Return a copy of the network whose convolutions are `_ProductConvolution` or `_RowConvolution`."""
    form = _ProductConvolution if as_products else _RowConvolution
    changed = deepcopy(network, {id(one): one for one in network.parameters()})
    for module in list(changed.modules()):
        for name, child in module.named_children():
            if isinstance(child, nn.Conv1d):
                setattr(module, name, form(child))
    return changed


_NOT_GIVEN = float("nan")
_SEED = 1234
_COMPARED_LENGTHS = (20, 50, 80, 110)  # tokens of the utterances used to check a quantized file
Outputs = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor | None]


def _frame_numbers(lengths: Tensor) -> Tensor:
    return torch.arange(int(lengths.max()), device=lengths.device)


class ExportableFastPitch(nn.Module):
    """FastPitch with all controls as tensors; the network predicts values that are NaN."""

    mean: Tensor  # (1,) or (n_speakers,), of the file's input pitch
    std: Tensor

    def __init__(self, network: FastPitch) -> None:
        super().__init__()
        self.network = network
        self.frame_numbers = torch.jit.script(_frame_numbers)  # tracing would bake in the example's number of frames
        mean, std = graph_statistics(network.pitch_mean, network.pitch_std)
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)

    def forward(
        self,
        tokens: Tensor,
        lengths: Tensor,
        pace: Tensor,
        max_duration: Tensor,
        durations: Tensor,
        pitch: Tensor,
        energy: Tensor | None = None,
        speaker: Tensor | None = None,
    ) -> Outputs:
        """Inputs and outputs: see `_shapes`; durations in frames, pitch in Hz (0: unvoiced), max_duration in frames."""
        network = self.network
        mask = mask_from_lengths(lengths, pace.size(1))
        encoded, log_durations, predicted = network.encode(tokens, lengths, speaker)
        own = torch.minimum((torch.exp(log_durations) - 1).clamp(min=0), max_duration.unsqueeze(1))
        frames = whole_frames(torch.where(torch.isnan(durations), own, durations) * mask / pace)
        mean, std = self.mean, self.std
        if speaker is not None and mean.size(0) > 1:
            mean, std = mean[speaker].unsqueeze(1), std[speaker].unsqueeze(1)
        given = (pitch - mean) / std * (pitch != 0)
        is_given = ~torch.isnan(pitch)
        normalized = torch.where(is_given, given, predicted)
        pitch_hz = torch.where(is_given, pitch, predicted * std + mean) * mask
        encoded, spoken_energy = network.add_pitch(encoded, lengths, normalized)
        if spoken_energy is not None and energy is not None:
            spoken_energy = torch.where(torch.isnan(energy), spoken_energy, energy)
        encoded = network.add_energy(encoded, lengths, spoken_energy)
        # Not `regulate_length`: ONNX has no searchsorted.
        ends = frames.cumsum(1)
        mel_lengths = ends[:, -1]
        positions = self.frame_numbers(mel_lengths).unsqueeze(0)
        index = (positions.unsqueeze(2) >= ends.unsqueeze(1)).long().sum(2).clamp(max=ends.size(1) - 1)
        regulated = torch.gather(encoded, 1, index.unsqueeze(2).expand(-1, -1, encoded.size(2)))
        regulated = regulated * (positions < mel_lengths.unsqueeze(1)).unsqueeze(2)
        mel = network.decode_frames(regulated, mel_lengths)
        return mel, mel_lengths, frames, own * mask, pitch_hz, spoken_energy


def graph_statistics(mean: Tensor, std: Tensor) -> tuple[Tensor, Tensor]:
    """Return the statistics of a file's pitch, which is in Hz, or normalized if the network has no statistics."""
    known = (std > 0).all()
    return torch.where(known, mean, 0.0), torch.where(known, std, 1.0)


def _shapes(config: ModelConfig) -> tuple[Shapes, Shapes]:
    """Return the shapes of inputs and outputs."""
    symbols: Shape = ("batch", "tokens")
    tokens = (*symbols, config.n_symbols) if config.symbol_type == "pf" else symbols
    inputs: Shapes = {"tokens": tokens, "lengths": ("batch",), "pace": symbols, "max_duration": ("batch",)}
    inputs |= {"durations": symbols, "pitch": symbols}
    outputs: Shapes = {"mel": ("batch", config.n_mel_channels, "frames"), "mel_lengths": ("batch",)}
    outputs |= dict.fromkeys(("frames_of_tokens", "predicted_durations", "spoken_pitch"), symbols)
    if config.energy_conditioning:
        inputs["energy"] = outputs["spoken_energy"] = symbols
    if config.n_speakers > 1:
        inputs["speaker"] = ("batch",)
    return inputs, outputs


def exports(network: FastPitch, config: ModelConfig, audio: AudioConfig) -> Exports:
    """Export FastPitch as one part."""
    inputs, outputs = _shapes(config)
    uniform, (mean, std) = torch.special.ndtr, graph_statistics(network.pitch_mean, network.pitch_std)

    def ids(values: Tensor) -> Tensor:
        return (uniform(values) * config.n_symbols).long().clamp(max=config.n_symbols - 1)

    def given_here_and_there(values: Tensor) -> Tensor:
        return torch.where((values * 1000).long() % 2 == 0, values, _NOT_GIVEN)

    # Functions that turn normal random numbers into inputs.
    made: dict[str, Callable[[Tensor], Tensor]] = {
        "tokens": (lambda values: (values > 0).float()) if config.symbol_type == "pf" else ids,
        "pace": lambda values: 0.7 + 0.7 * uniform(values),
        "max_duration": lambda values: torch.full_like(values, 75.0),
        "durations": lambda values: given_here_and_there(9 * uniform(values)).round(),
        "pitch": lambda values: given_here_and_there(values) * std[0] + mean[0],
        "energy": lambda values: given_here_and_there(3 * uniform(values)),
        "speaker": lambda values: torch.arange(len(values)) % config.n_speakers,
    }
    # Durations are given, so that 8-bit and 32-bit mels have the same length; pitch and energy are predicted.
    compared = made | dict.fromkeys(("pitch", "energy"), lambda values: torch.full_like(values, _NOT_GIVEN))
    compared["durations"] = lambda values: (2 + 10 * uniform(values)).floor()
    example = random_examples(inputs, compared)

    def onnx_form(quantized: bool) -> ExportableFastPitch:
        return ExportableFastPitch(with_onnx_convolutions(network, as_products=quantized)).eval()

    def utterances(_: Sequence[Tensor]) -> list[tuple[Tensor, ...]]:
        return [example(1, length, torch.Generator().manual_seed(_SEED)) for length in _COMPARED_LENGTHS]

    module, examples = ExportableFastPitch(network).eval(), random_examples(inputs, made)
    quantization = Quantization(False, utterances)
    part = Part("", module, inputs, outputs, examples, True, onnx_form=onnx_form, quantization=quantization)
    description = {
        "pitch_mean": network.pitch_mean.tolist(),
        "pitch_std": network.pitch_std.tolist(),
        "pitch_unit": "Hz" if bool((network.pitch_std > 0).all()) else "normalized",
        "not_given": "NaN in durations, pitch or energy: the network predicts the value",
    }
    return Exports((part,), description)


class ExportedNetwork(SpeakerPitch):
    """An exported FastPitch file in place of the network."""

    def __init__(self, run: Runner, config: ModelConfig, description: dict[str, Any], device: torch.device) -> None:
        self._run, self._inputs = run, description["inputs"]
        self.n_speakers = config.n_speakers
        self.pitch_mean = torch.tensor(description["pitch_mean"], device=device)
        self.pitch_std = torch.tensor(description["pitch_std"], device=device)
        self._graph = copy(self)  # with the statistics of the file's input and output pitch
        self._graph.pitch_mean, self._graph.pitch_std = graph_statistics(self.pitch_mean, self.pitch_std)

    def infer(self, tokens: Tensor, lengths: Tensor, controls: Controls | None = None) -> MelOutput:
        """Speak tokens (B, L) of ``lengths`` (B,); a pitch transform needs an extra run to predict the pitch."""
        controls = Controls() if controls is None else controls
        if "energy" not in self._inputs and controls.energy is not None:
            raise InputError("this model predicts no energy (it was trained without --energy-conditioning)")
        speakers, shape = self.speaker_ids(controls.speaker, tokens), tokens.shape[:2]
        unknown = torch.full(shape, _NOT_GIVEN, device=tokens.device)
        pace = torch.as_tensor(controls.pace, dtype=torch.float32, device=tokens.device)
        inputs = {
            "tokens": tokens,
            "lengths": lengths,
            "pace": pace.expand(shape).contiguous(),
            "max_duration": torch.full_like(lengths, controls.max_duration, dtype=torch.float32),
            "durations": unknown if controls.durations is None else controls.durations.float(),
            "pitch": unknown,
            "energy": unknown if controls.energy is None else controls.energy.float(),
        }
        if speakers is not None:
            inputs["speaker"] = speakers
        inputs = {name: inputs[name] for name in self._inputs}
        hz = controls.pitch_hz
        given = normalized = controls.pitch if hz is None else self.normalized_pitch(hz, speakers)
        if given is None and controls.pitch_transform is not None:
            # With one frame per utterance, so that the decoder takes almost no time.
            one_frame = self._run(inputs | {"durations": torch.zeros(shape, device=tokens.device)})
            normalized = self._graph.normalized_pitch(one_frame["spoken_pitch"], speakers)
            normalized = controls.pitch_transform(normalized, lengths, *self.pitch_statistics(speakers))
        if normalized is not None:
            # In a given pitch, 0 means unvoiced; in a transformed one, it means the mean.
            hz = self._graph.pitch_in_hz(normalized, speakers)
            inputs["pitch"] = hz if given is None else hz * (given != 0)
        out = self._run(inputs)
        if normalized is None:
            normalized = self._graph.normalized_pitch(out["spoken_pitch"], speakers)
        pitch_hz = self.pitch_in_hz(normalized.double(), speakers)
        pitch_hz = pitch_hz if given is None else pitch_hz * (given != 0)
        made = (out["mel"], out["mel_lengths"], out["predicted_durations"], out["frames_of_tokens"])
        energy = out.get("spoken_energy")
        return MelOutput(*made, normalized, energy, pitch_hz=pitch_hz, decoded_energy=energy)
