"""WaveGlow: invertible flows from sound to Gaussian noise, conditioned on the mel-spectrogram, and back."""

from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn

from common.config import AudioConfig
from common.errors import OptionError
from common.nn.layers import SeededNoise, mask_from_lengths, never_compiled
from common.nn.weight_norm import WeightNormConv1d, fold_weight_norm
from common.synthesis.networks import MelToWave, VocoderSettings
from common.text.config import TextConfig
from waveglow.arg_parser import InferenceOptions
from waveglow.config import SIGMA_INFER as SIGMA_INFER, ModelConfig as ModelConfig

UPSAMPLING_FRAMES = 4  # length of the upsampling's kernel, mel frames


@dataclass(frozen=True)
class FlowOutput:
    """The flows' output for sound, G = T // n_group positions; all float32."""

    z: Tensor  # (B, n_group, G); channels in the order of output
    log_s: tuple[Tensor, ...]  # per flow, (B, channels / 2, G): logarithms of its scales
    log_det: tuple[Tensor, ...]  # per flow, scalar: of its 1x1 convolution, summed over all B x G positions


class WN(nn.Module):
    """The WaveNet-like network of an affine coupling layer: shift and scale for half the channels (section 2.1)."""

    in_float32 = ("end",)

    def __init__(self, config: ModelConfig, *, n_in: int) -> None:
        """The network reads ``n_in`` channels to shift and scale the same number."""
        super().__init__()
        self.n_channels = width = config.wn_channels
        n_cond = config.n_mel_channels * config.n_group
        size = config.wn_kernel_size
        self.in_layers = nn.ModuleList()
        self.res_skip_layers = nn.ModuleList()
        self.cond_layers = nn.ModuleList()
        for index in range(config.wn_layers):
            dilation = 2**index
            padding = (size - 1) // 2 * dilation
            is_last = index == config.wn_layers - 1
            self.in_layers.append(WeightNormConv1d(width, 2 * width, size, dilation=dilation, padding=padding))
            self.cond_layers.append(WeightNormConv1d(n_cond, 2 * width, 1))
            self.res_skip_layers.append(WeightNormConv1d(width, width if is_last else 2 * width, 1))
        self.start = WeightNormConv1d(n_in, width, 1)
        self.end = nn.Conv1d(width, 2 * n_in, 1)
        # A flow starts as the identity, except for its 1x1 convolution.
        for parameter in self.end.parameters():
            nn.init.zeros_(parameter)

    def forward(self, x: Tensor, cond: Tensor, padding: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """x (B, n_in, G), cond (B, n_mels * n_group, G) -> shift and log-scale, (B, n_in, G) float32.

        Positions of ``padding`` (B, 1, G), True past the ends, are zeroed before each convolution.
        """
        x = self.start(x)
        total: Tensor | None = None
        for in_layer, cond_layer, res_skip_layer in zip(self.in_layers, self.cond_layers, self.res_skip_layers):
            if padding is not None:
                x = x.masked_fill(padding, 0.0)
            filtered, gate = (in_layer(x) + cond_layer(cond)).chunk(2, dim=1)
            skip = res_skip_layer(torch.tanh(filtered) * torch.sigmoid(gate))
            if skip.size(1) > self.n_channels:
                residual, skip = skip.chunk(2, dim=1)
                x = x + residual
            total = skip if total is None else total + skip
        assert total is not None  # there is at least one layer
        with torch.autocast("cuda", enabled=False):  # shifts go into the wave, so bfloat16's 8 bits are too few
            shift, log_scale = self.end(total.float() if total.is_cuda else total).float().chunk(2, dim=1)
        return shift, log_scale


class Invertible1x1Conv(nn.Module):
    """An invertible 1x1 convolution that mixes channels (section 2.2), always in at least float32."""

    in_float32 = ("conv",)

    def __init__(self, n_channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(n_channels, n_channels, 1, bias=False)
        rotation, _ = torch.linalg.qr(torch.randn(n_channels, n_channels))
        rotation[:, 0] *= torch.where(torch.linalg.det(rotation) < 0, -1.0, 1.0)
        self.conv.weight.data = rotation.contiguous()[:, :, None]
        self.kept_inverse: Tensor | None
        self.register_buffer("kept_inverse", None, persistent=False)  # (C, C); set by `WaveGlow.prepare_for_inference`

    @property
    def matrix(self) -> Tensor:
        """(C, C) float32."""
        return self.conv.weight[:, :, 0].float()

    def forward(self, z: Tensor, *, inverse: bool = False) -> Tensor:
        """z (B, C, G) -> (B, C, G), or the inverse."""
        matrix = self.matrix if not inverse else self.inverted() if self.kept_inverse is None else self.kept_inverse
        # On a GPU, float32 may mean TF32, whose rounding errors would be audible in the inverse's samples.
        dtype = torch.float64 if inverse and z.is_cuda else torch.float32
        with torch.autocast(z.device.type, enabled=False):
            return torch.matmul(matrix.to(dtype), z.to(dtype)).float()

    def inverted(self) -> Tensor:
        """Return the inverse of `matrix`, computed in float64 and rounded once."""
        return torch.linalg.inv(self.matrix.detach().double()).float()


class WaveGlow(MelToWave, nn.Module):
    """Sound and mel to noise, for training, and noise and mel to sound (Prenger et al., WaveGlow, 2018)."""

    def __init__(self, config: ModelConfig, *, hop_length: int) -> None:
        """``hop_length`` (samples) is the mels'; it must be a multiple of ``config.n_group``."""
        super().__init__()
        self.config = config
        self.hop_length = hop_length
        self.upsample = nn.ConvTranspose1d(
            config.n_mel_channels, config.n_mel_channels, UPSAMPLING_FRAMES * hop_length, stride=hop_length
        )
        widths = [config.n_channels(flow) for flow in range(config.n_flows)]
        self.WN = nn.ModuleList(WN(config, n_in=width // 2) for width in widths)
        self.convinv = nn.ModuleList(Invertible1x1Conv(width) for width in widths)
        self._noise = SeededNoise(config.n_group)

    @never_compiled
    def log_determinants(self) -> Tensor:
        """Return the log-determinants of the 1x1 convolutions (n_flows,), NaN if a determinant isn't positive."""
        matrices = [cast(Tensor, conv.matrix) for conv in self.convinv]
        with torch.autocast(matrices[0].device.type, enabled=False):
            signs, log_abs = zip(*map(torch.linalg.slogdet, matrices))
        return torch.where(torch.stack(signs) > 0, torch.stack(log_abs), torch.nan)

    def forward(self, mel: Tensor, audio: Tensor) -> FlowOutput:
        """mel (B, n_mels, F) of audio (B, T), F * hop + 3 * hop >= T; an incomplete last group is left out."""
        config = self.config
        log_dets = self.log_determinants()
        n_positions = audio.size(1) // config.n_group
        n_samples = n_positions * config.n_group
        cond = grouped(self.upsample(mel), config.n_group, n_samples)
        z = audio[:, :n_samples].float().unflatten(1, (n_positions, config.n_group)).transpose(1, 2)
        early, log_s = [], []
        for flow, (convinv, wn) in enumerate(zip(self.convinv, self.WN)):
            taken = z.size(1) - config.n_channels(flow)
            if taken:
                early.append(z[:, :taken])
            z = convinv(z[:, taken:])
            first, second = z.chunk(2, dim=1)
            shift, log_scale = wn(first, cond)
            z = torch.cat([first, torch.exp(log_scale) * second + shift], dim=1)
            log_s.append(log_scale)
        count = len(audio) * n_positions
        return FlowOutput(torch.cat([*early, z], dim=1), tuple(log_s), tuple(count * log_det for log_det in log_dets))

    @torch.no_grad()
    def infer(
        self, mel: Tensor, lengths: Tensor | None = None, *, sigma: float = SIGMA_INFER, seed: int = 1234
    ) -> Tensor:
        """Like `MelToWave.infer`; noise of standard deviation ``sigma`` depends on ``seed`` and position only."""
        per_frame = self.hop_length // self.config.n_group  # positions
        noise = self._noise(seed, mel.size(2) * per_frame, device=mel.device)
        return self.inverse(mel, (sigma * noise).expand(len(mel), -1, -1), lengths)

    @torch.no_grad()
    def inverse(self, mel: Tensor, z: Tensor, lengths: Tensor | None = None) -> Tensor:
        """mel (B, n_mels, F), z (B, n_group, F * hop / n_group) as in `FlowOutput` -> wave (B, F * hop) float32.

        With ``lengths`` (B,) frames each utterance is as if it were alone.
        """
        config, padding = self.config, None
        if lengths is not None:
            padding = ~mask_from_lengths(lengths * (self.hop_length // config.n_group), z.size(2)).unsqueeze(1)
        z = z.to(torch.float32, copy=True, memory_format=torch.contiguous_format)
        cond = grouped(self.upsample(mel), config.n_group, mel.size(2) * self.hop_length)
        for flow in reversed(range(config.n_flows)):
            active = z[:, config.n_group - config.n_channels(flow) :]
            first, second = active.chunk(2, dim=1)
            shift, log_scale = self.WN[flow](first, cond, padding)
            second.sub_(shift).mul_(torch.exp(-log_scale))
            active.copy_(self.convinv[flow](active, inverse=True))
        wave = z if padding is None else z.masked_fill(padding, 0.0)
        return wave.transpose(1, 2).flatten(1)

    def settings(self, options: InferenceOptions, *, seed: int, where: Path) -> VocoderSettings:
        """Return the noise's standard deviation and seed; OptionError if --wn-channels differs from the checkpoint."""
        if options.wn_channels not in (None, self.config.wn_channels):
            raise OptionError(f"--wn-channels {options.wn_channels}: {where} has {self.config.wn_channels}")
        return VocoderSettings({"sigma": options.sigma_infer, "seed": seed}, silent={"sigma": 0.0})

    def prepare_for_inference(self) -> None:
        self.eval()
        fold_weight_norm(self)
        for conv in self.convinv:
            assert isinstance(conv, Invertible1x1Conv)
            conv.kept_inverse = conv.inverted()


def grouped(spectrum: Tensor, n_group: int, n_samples: int) -> Tensor:
    """Group the first ``n_samples`` of spectrum (B, n_mels, T) -> (B, n_mels * n_group, G)."""
    return spectrum[:, :, :n_samples].unflatten(2, (-1, n_group)).transpose(2, 3).flatten(1, 2)


def build_networks(
    config: ModelConfig, audio: AudioConfig, text: TextConfig | None, *, inference: bool = False
) -> dict[str, nn.Module]:
    """Build a network with random weights; raises OptionError if the group size doesn't divide the hop length."""
    if audio.hop_length % config.n_group:
        raise OptionError(f"--groups {config.n_group}: expected a divisor of the hop length, {audio.hop_length}")
    return {"waveglow": WaveGlow(config, hop_length=audio.hop_length)}
