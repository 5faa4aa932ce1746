"""Tacotron 2's architecture."""

from dataclasses import dataclass

from common.errors import OptionError
from common.nn import check_architecture


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
    mask_padding: bool = True  # False: outputs after an utterance's end count in the loss, as in the original
    mask_convolutions: bool = True  # False: convolutions and batch norm read padding, as in the original

    def __post_init__(self) -> None:
        check_architecture(self)
        if self.n_frames_per_step != 1:
            raise OptionError(f"n_frames_per_step {self.n_frames_per_step}: this decoder makes 1 frame a step")
        if not 0 < self.gate_threshold < 1:
            raise OptionError(f"--gate-threshold {self.gate_threshold}: expected a probability between 0 and 1")
        if self.symbols_embedding_dim != self.encoder_embedding_dim or self.encoder_embedding_dim % 2:
            raise OptionError(
                f"--symbols-embedding-dim {self.symbols_embedding_dim}, --encoder-embedding-dim "
                f"{self.encoder_embedding_dim}: expected one even number for both"
            )
