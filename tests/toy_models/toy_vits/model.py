"""The network."""

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from common.config import AudioConfig
from common.nn.alignment_search import find_path
from common.nn.layers import mask_from_lengths
from common.synthesis.networks import TextToWave
from common.synthesis.utterances import Controls, WaveOutput
from common.text.config import TextConfig
from toy_vits.arg_parser import InferenceOptions
from toy_vits.config import ModelConfig


class ToyVits(TextToWave, nn.Module):
    """A mean frame and a duration for each symbol, and a decoder from frames to samples."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.means = nn.Embedding(config.n_symbols, config.n_mels)
        nn.init.constant_(self.means.weight, -8.0)
        self.log_durations = nn.Embedding(config.n_symbols, 1)
        first, last = nn.Linear(config.n_mels, config.channels), nn.Linear(config.channels, config.hop_length)
        self.decoder = nn.Sequential(first, nn.Tanh(), last, nn.Tanh(), nn.Flatten(1))  # (B, F, n_mels) -> (B, F * hop)

    def find_path(self, tokens: Tensor, lengths: Tensor, mels: Tensor, mel_lengths: Tensor) -> Tensor:
        """The token of each frame (B, F) whose mean frames are nearest to mels (B, n_mels, F)."""
        return find_path(-torch.cdist(mels.transpose(1, 2), self.means(tokens)), lengths, mel_lengths)

    @torch.no_grad()
    def infer(self, tokens: Tensor, lengths: Tensor, controls: Controls | None = None) -> WaveOutput:
        controls = controls or Controls()
        gain = (controls.options or InferenceOptions()).toy_gain
        durations = (self.log_durations(tokens)[:, :, 0].exp() / controls.pace).round().clamp(min=1)
        frames = durations.long() * mask_from_lengths(lengths, tokens.size(1))
        rows = [means.repeat_interleave(n, dim=0) for means, n in zip(self.means(tokens), frames)]
        wave = gain * self.decoder(pad_sequence(rows, batch_first=True))
        n_samples = frames.sum(1) * (wave.size(1) // int(frames.sum(1).max()))
        return WaveOutput(wave * mask_from_lengths(n_samples, wave.size(1)), frames.sum(1), frames=frames)


def build_networks(
    config: ModelConfig, audio: AudioConfig, text: TextConfig | None, *, inference: bool = False
) -> dict[str, nn.Module]:
    """The one network."""
    return {"toy_vits": ToyVits(config)}
