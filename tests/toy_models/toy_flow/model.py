"""The network."""

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from common.config import AudioConfig
from common.nn.alignment_search import find_path
from common.nn.layers import SeededNoise, mask_from_lengths
from common.synthesis.networks import TextToMel
from common.synthesis.utterances import Controls, MelOutput
from common.text.config import TextConfig
from toy_flow.arg_parser import InferenceOptions
from toy_flow.config import ModelConfig


class ToyFlow(TextToMel, nn.Module):
    """A mean frame and a duration for each symbol, and a velocity from noise to mel that is conditioned on them."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.means = nn.Embedding(config.n_symbols, config.n_mels)
        nn.init.constant_(self.means.weight, -8.0)
        self.log_durations = nn.Embedding(config.n_symbols, 1)
        first = nn.Conv1d(2 * config.n_mels + 1, config.channels, 1)
        self.layers = nn.Sequential(first, nn.Tanh(), nn.Conv1d(config.channels, config.n_mels, 1))
        self.noise = SeededNoise(config.n_mels)

    def find_path(self, tokens: Tensor, lengths: Tensor, mels: Tensor, mel_lengths: Tensor) -> Tensor:
        """The token of each frame (B, F) whose mean frames are nearest to mels (B, n_mels, F)."""
        return find_path(-torch.cdist(mels.transpose(1, 2), self.means(tokens)), lengths, mel_lengths)

    def velocity(self, x: Tensor, time: Tensor, means: Tensor) -> Tensor:
        """x and means (B, n_mels, F), time (B,) from 0, noise, to 1, mel -> (B, n_mels, F)."""
        return self.layers(torch.cat([x, means, time[:, None, None].expand(-1, 1, x.size(2))], 1))

    @torch.no_grad()
    def infer(self, tokens: Tensor, lengths: Tensor, controls: Controls | None = None) -> MelOutput:
        controls = controls or Controls()
        n_steps = (controls.options or InferenceOptions()).decoder_steps
        durations = (self.log_durations(tokens)[:, :, 0].exp() / controls.pace).round().clamp(min=1)
        frames = durations.long() * mask_from_lengths(lengths, tokens.size(1))
        rows = [means.repeat_interleave(n, dim=0) for means, n in zip(self.means(tokens), frames)]
        means, mel_lengths = pad_sequence(rows, batch_first=True).transpose(1, 2), frames.sum(1)
        x = means + self.noise(controls.seed, means.size(2), device=tokens.device)
        for step in range(n_steps):
            x = x + self.velocity(x, x.new_full((len(x),), step / n_steps), means) / n_steps
        return MelOutput(x * mask_from_lengths(mel_lengths, x.size(2)).unsqueeze(1), mel_lengths, frames=frames)


def build_networks(
    config: ModelConfig, audio: AudioConfig, text: TextConfig | None, *, inference: bool = False
) -> dict[str, nn.Module]:
    """The one network."""
    return {"toy_flow": ToyFlow(config)}
