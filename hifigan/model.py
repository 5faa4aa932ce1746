"""HiFi-GAN's generator: mel-spectrogram to wave with transposed convolutions and dilated residual blocks."""

from math import prod
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common.config import AudioConfig
from common.errors import OptionError
from common.nn.discriminators import build_discriminators
from common.nn.layers import mask_from_lengths
from common.nn.weight_norm import WeightNorm, fold_weight_norm
from common.synthesis.networks import MelToWave, VocoderSettings
from common.text.config import TextConfig
from hifigan.arg_parser import InferenceOptions, TrainingOptions
from hifigan.config import ModelConfig

_OUTER_KERNEL = 7  # of the first and the last convolution
_AMX_FAULTY_CHANNELS = 16  # see RowConvTranspose


class RowConv(WeightNorm, nn.Conv1d):
    """A convolution over time of (B, C, 1, T), because (B, C, T) has no channels-last memory format."""

    def forward(self, x: Tensor) -> Tensor:
        """x (B, in_channels, 1, T) -> (B, out_channels, 1, T)."""
        weight = self.normed_weight().unsqueeze(2)
        return F.conv2d(x, weight, self.bias, (1, 1), (0, int(self.padding[0])), (1, self.dilation[0]))


class RowConvTranspose(WeightNorm, nn.ConvTranspose1d):
    """A transposed convolution over time of (B, C, 1, T).

    On CPUs, layers with up to 16 channels are trained in float32 even under autocast: with AMX, oneDNN's bfloat16
    gradient of the input is silently wrong (PyTorch 2.13; compare pytorch/pytorch#169688).
    """

    def forward(self, x: Tensor) -> Tensor:
        """x (B, in_channels, 1, T) -> (B, out_channels, 1, T * stride)."""
        if torch.jit.is_scripting():  # TorchScript does not support autocast for a device found at run time
            return self.convolve(x)
        if x.device.type == "cpu" and x.requires_grad and self.out_channels <= _AMX_FAULTY_CHANNELS:
            with torch.autocast("cpu", enabled=False):
                return self.convolve(x.float()).to(x.dtype)
        return self.convolve(x)

    def convolve(self, x: Tensor) -> Tensor:
        """x (B, in_channels, 1, T) -> (B, out_channels, 1, T * stride), in the current autocast precision."""
        weight = self.normed_weight().unsqueeze(2)
        return F.conv_transpose2d(x, weight, self.bias, (1, self.stride[0]), (0, int(self.padding[0])))


class ResBlock1(nn.Module):
    """Residual pairs of a dilated and a plain convolution."""

    def __init__(self, n_channels: int, kernel_size: int, dilations: tuple[int, ...]) -> None:
        super().__init__()
        self.convs1 = _same_convs(n_channels, kernel_size, dilations)
        self.convs2 = _same_convs(n_channels, kernel_size, (1,) * len(dilations))

    def forward(self, x: Tensor, padding: Tensor | None) -> Tensor:
        """x (B, C, 1, T), padding (B, 1, 1, T) True past the ends -> (B, C, 1, T)."""
        for conv1, conv2 in zip(self.convs1, self.convs2):
            inner = conv1(_activate(x, padding))
            x = conv2(_activate(inner, padding, inplace=True)).add_(x)
        return x


class ResBlock2(nn.Module):
    """Residual dilated convolutions."""

    def __init__(self, n_channels: int, kernel_size: int, dilations: tuple[int, ...]) -> None:
        super().__init__()
        self.convs = _same_convs(n_channels, kernel_size, dilations)

    def forward(self, x: Tensor, padding: Tensor | None) -> Tensor:
        """x (B, C, 1, T), padding (B, 1, 1, T) True past the ends -> (B, C, 1, T)."""
        for conv in self.convs:
            x = conv(_activate(x, padding)).add_(x)
        return x


class ReceptiveFields(nn.ModuleList):
    """Parallel residual blocks of several kernel sizes, averaged (the paper's multi-receptive field fusion)."""

    def forward(self, x: Tensor, padding: Tensor | None) -> Tensor:
        """x (B, C, 1, T), padding (B, 1, 1, T) True past the ends -> (B, C, 1, T)."""
        total: Tensor | None = None
        n_blocks = 0  # TorchScript does not support len(self)
        for block in self:
            value = block(x, padding)
            total = value if total is None else total.add_(value)
            n_blocks += 1
        assert total is not None
        return total.div_(n_blocks)


class Generator(MelToWave, nn.Module):
    """Mel-spectrogram to wave (section 2.2 of arXiv:2010.05646), with PyTorch's initial weights."""

    in_float32 = ("conv_post",)

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        width = config.upsample_initial_channel
        block = ResBlock1 if config.resblock == "1" else ResBlock2
        self.rates = config.upsample_rates
        self.conv_pre = RowConv(config.n_mel_channels, width, _OUTER_KERNEL, padding=_OUTER_KERNEL // 2)
        self.ups = nn.ModuleList()
        self.resblocks = nn.ModuleList()
        for rate, kernel_size in zip(config.upsample_rates, config.upsample_kernel_sizes):
            padding = (kernel_size - rate) // 2
            self.ups.append(RowConvTranspose(width, width // 2, kernel_size, rate, padding))
            width //= 2
            shapes = zip(config.resblock_kernel_sizes, config.resblock_dilation_sizes)
            self.resblocks.append(ReceptiveFields(block(width, size, dilations) for size, dilations in shapes))
        self.conv_post = RowConv(width, 1, _OUTER_KERNEL, padding=_OUTER_KERNEL // 2)

    def forward(self, mel: Tensor, lengths: Tensor | None = None) -> Tensor:
        """mel (B, n_mels, F), lengths (B,) frames -> wave (B, F * hop) in [-1, 1], zero past an utterance's end.

        With ``lengths``, samples past an utterance's end are masked before every convolution.
        """
        padding = _padding(lengths, mel.size(2))
        rows = mel.unsqueeze(2)
        # Otherwise oneDNN, and cuDNN in 16 bits, convert every layer's input and output, which takes a fifth of the
        # time at inference and more than half of a small generator's training time.
        x = self.conv_pre(_masked(rows, padding)).contiguous(memory_format=torch.channels_last)
        for up, blocks, rate in zip(self.ups, self.resblocks, self.rates):
            x = up(_activate(x, padding, inplace=True))
            if lengths is not None:
                lengths = lengths * rate
            padding = _padding(lengths, x.size(3))
            x = blocks(x, padding)
        # The authors left the last slope at PyTorch's default.
        x = _activate(x, padding, slope=0.01, inplace=True)
        if torch.jit.is_scripting():  # as in RowConvTranspose
            x = self.conv_post(x)
        else:
            with torch.autocast(x.device.type, enabled=False):  # bfloat16 samples would sound noisy
                x = self.conv_post(x.float())
        return _masked(torch.tanh(x), padding)[:, 0, 0]

    @torch.jit.export
    def infer(self, mel: Tensor, lengths: Tensor | None = None) -> Tensor:
        """`forward`, under the name that all vocoders share."""
        return self.forward(mel, lengths)

    @torch.jit.unused
    def settings(self, options: InferenceOptions, *, seed: int, where: Path) -> VocoderSettings:
        return VocoderSettings(context=context_frames(self.config))

    @torch.jit.unused
    def prepare_for_inference(self) -> None:
        self.eval()
        fold_weight_norm(self)


def to_torchscript(network: Generator) -> torch.jit.ScriptModule:
    """Prepare ``network`` for inference and compile it to TorchScript."""
    network.prepare_for_inference()
    return torch.jit.script(network)


def build_networks(
    config: ModelConfig, audio: AudioConfig, text: TextConfig | None, *, inference: bool = False
) -> dict[str, nn.Module]:
    """Build a generator and discriminators with random weights; OptionError if rates don't multiply to the hop."""
    samples = prod(config.upsample_rates)
    if samples != audio.hop_length:
        rates = " ".join(map(str, config.upsample_rates))
        raise OptionError(f"--upsample-rates {rates} multiply to {samples}, expected the hop, {audio.hop_length}")
    networks: dict[str, nn.Module] = {"generator": Generator(config)}
    if not inference:
        networks |= build_discriminators(config)
    return networks


def context_frames(config: ModelConfig) -> int:
    """Return how many mel frames on each side a frame's samples depend on, from the last convolution to the first.

    A convolution with kernel size k and dilation d adds d (k - 1) / 2 positions. A transposed one with rate r and
    padding (k - r) / 2 turns n positions into (n + (k + r) / 2 - 1) / r, rounded down.
    """
    block_reach = 0
    for size, dilations in zip(config.resblock_kernel_sizes, config.resblock_dilation_sizes):
        plain = len(dilations) if config.resblock == "1" else 0  # the second convolutions of the pairs
        block_reach = max(block_reach, (size - 1) // 2 * (sum(dilations) + plain))
    reach = _OUTER_KERNEL // 2
    for rate, size in zip(reversed(config.upsample_rates), reversed(config.upsample_kernel_sizes)):
        reach = (reach + block_reach + (size + rate) // 2 - 1) // rate
    return reach + _OUTER_KERNEL // 2


def set_up_networks(networks: dict[str, Any], options: TrainingOptions, **_: Any) -> list[str]:
    """Apply the options that aren't part of the architecture."""
    networks["msd"].amp_grouped_conv = not options.no_amp_grouped_conv
    return []


def _same_convs(n_channels: int, size: int, dilations: tuple[int, ...]) -> nn.ModuleList:
    """Build convolutions that preserve the length."""
    return nn.ModuleList(
        RowConv(n_channels, n_channels, size, dilation=one, padding=(size - 1) * one // 2) for one in dilations
    )


def _padding(lengths: Tensor | None, size: int) -> Tensor | None:
    """lengths (B,) -> mask (B, 1, 1, size), True past the ends."""
    return None if lengths is None else ~mask_from_lengths(lengths, size)[:, None, None]


def _masked(x: Tensor, padding: Tensor | None) -> Tensor:
    """x (B, C, 1, T), zero where ``padding`` (B, 1, 1, T) is True."""
    return x if padding is None else x.masked_fill(padding, 0.0)


def _activate(x: Tensor, padding: Tensor | None, slope: float = 0.1, inplace: bool = False) -> Tensor:
    """Leaky ReLU, and zeros past the ends."""
    return _masked(F.leaky_relu(x, slope, inplace), padding)
