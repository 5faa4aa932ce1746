"""Tacotron 2: text to mel-spectrogram with attention (Shen et al. 2018), with dropout in place of zoneout."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from common.config import AudioConfig, TextConfig
from common.errors import InputError, OptionError
from common.layers import mask_from_lengths
from common.synthesis import Controls, MelOutput
from common.text.front_end import TextFrontEnd
from tacotron2.attention import Attention
from tacotron2.data_function import Tacotron2Batch
from tacotron2.decoder import Decoder, PrenetMasks
from tacotron2.encoder import Encoder, Postnet

PADDED_GATE_LOGIT = 1e3  # of frames after an utterance's end, which are certain to be after it


@dataclass(frozen=True)
class ModelConfig:
    """Tacotron 2's architecture; the names are those of the published checkpoints' configurations."""

    n_mel_channels: int = 80
    n_symbols: int = 148
    symbols_embedding_dim: int = 512
    encoder_kernel_size: int = 5
    encoder_n_convolutions: int = 3
    encoder_embedding_dim: int = 512
    attention_rnn_dim: int = 1024
    attention_dim: int = 128
    attention_location_n_filters: int = 32
    attention_location_kernel_size: int = 31
    n_frames_per_step: int = 1
    decoder_rnn_dim: int = 1024
    prenet_dim: int = 256
    max_decoder_steps: int = 2000
    gate_threshold: float = 0.5
    p_attention_dropout: float = 0.1
    p_decoder_dropout: float = 0.1
    postnet_embedding_dim: int = 512
    postnet_kernel_size: int = 5
    postnet_n_convolutions: int = 5
    decoder_no_early_stopping: bool = False
    mask_padding: bool = True  # False: outputs after an utterance's end stay, and count in the loss, as the original's
    mask_convolutions: bool = True  # False: convolutions and batch norm see padding, as the original's

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            option = "--" + name.replace("_", "-")
            if name.endswith("kernel_size") and (value < 1 or value % 2 == 0):
                raise OptionError(f"{option} {value}: expected an odd number, so that lengths stay as they are")
            if name.startswith("p_") and not 0 <= value < 1:
                raise OptionError(f"{option} {value}: expected a probability of at least 0 and less than 1")
            if isinstance(value, int) and not isinstance(value, bool) and value < 1:
                raise OptionError(f"{option} {value}: expected a whole number of at least 1")
        if self.n_frames_per_step != 1:
            raise OptionError(f"n_frames_per_step {self.n_frames_per_step}: this decoder makes 1 frame a step")
        if not 0 < self.gate_threshold < 1:
            raise OptionError(f"--gate-threshold {self.gate_threshold}: expected a probability between 0 and 1")
        if self.symbols_embedding_dim != self.encoder_embedding_dim or self.encoder_embedding_dim % 2:
            raise OptionError(
                f"--symbols-embedding-dim {self.symbols_embedding_dim}, --encoder-embedding-dim "
                f"{self.encoder_embedding_dim}: expected one even number for both"
            )


@dataclass(frozen=True)
class TrainingOutput:
    """What a teacher-forced pass makes of a batch."""

    mel: Tensor  # (B, n_mels, F) the decoder's
    mel_postnet: Tensor  # (B, n_mels, F) with the postnet's residual
    gate_logits: Tensor  # (B, F)
    alignments: Tensor  # (B, F, L) float32


class Tacotron2(nn.Module):
    """Encoder, attention decoder, postnet; ``infer`` speaks, ``forward`` trains."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        width = config.encoder_embedding_dim
        self.embedding = nn.Embedding(config.n_symbols, config.symbols_embedding_dim)
        bound = (6 / (config.n_symbols + config.symbols_embedding_dim)) ** 0.5
        nn.init.uniform_(self.embedding.weight, -bound, bound)
        self.encoder = Encoder(
            width, n_convolutions=config.encoder_n_convolutions, kernel_size=config.encoder_kernel_size
        )
        attention = Attention(
            config.attention_rnn_dim,
            width,
            config.attention_dim,
            location_n_filters=config.attention_location_n_filters,
            location_kernel_size=config.attention_location_kernel_size,
        )
        self.decoder = Decoder(
            n_mels=config.n_mel_channels,
            memory_dim=width,
            attention_rnn_dim=config.attention_rnn_dim,
            decoder_rnn_dim=config.decoder_rnn_dim,
            prenet_dim=config.prenet_dim,
            attention=attention,
            p_attention_dropout=config.p_attention_dropout,
            p_decoder_dropout=config.p_decoder_dropout,
        )
        self.postnet = Postnet(
            config.n_mel_channels,
            n_channels=config.postnet_embedding_dim,
            n_convolutions=config.postnet_n_convolutions,
            kernel_size=config.postnet_kernel_size,
        )

    def encode(self, tokens: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """tokens (B, L), lengths (B,) -> memory (B, L, C), zero at padding, and padding (B, L) bool."""
        mask = mask_from_lengths(lengths, tokens.size(1))
        memory = self.encoder(self.embedding(tokens), lengths, mask if self.config.mask_convolutions else None)
        return memory, ~mask

    def forward(
        self,
        tokens: Tensor,
        token_lengths: Tensor,
        mels: Tensor,
        mel_lengths: Tensor,
        *,
        prenet_masks: Tensor | None = None,
    ) -> TrainingOutput:
        """Teacher-forced pass: tokens (B, L), mels (B, n_mels, F), in any order of lengths.

        ``prenet_masks`` (F, layers, B or 1, prenet_dim) are drawn where they are None.
        """
        memory, padding = self.encode(tokens, token_lengths)
        decoded = self.decoder(memory, padding, mels, prenet_masks)
        mask = mask_from_lengths(mel_lengths, mels.size(2))
        mel, gate_logits = decoded.mel, decoded.gate_logits
        mel_postnet = mel + self.postnet(mel, mask if self.config.mask_convolutions else None)
        if self.config.mask_padding:
            mel, mel_postnet = mel * mask.unsqueeze(1), mel_postnet * mask.unsqueeze(1)
            gate_logits = gate_logits.masked_fill(~mask, PADDED_GATE_LOGIT)
        return TrainingOutput(mel, mel_postnet, gate_logits, decoded.alignments)
