"""Tacotron 2's architecture."""

from dataclasses import dataclass

from common.config import Architecture
from common.errors import OptionError
from common.options import check_options, option


@dataclass(frozen=True)
class ModelConfig(Architecture):
    """Tacotron 2's architecture, with the field names of the published checkpoints' configurations."""

    n_mel_channels: int = 80
    n_symbols: int = 148
    symbols_embedding_dim: int = option(512, "channels of the symbol embedding", least=1)
    encoder_kernel_size: int = option(5, "kernel size of the encoder's convolutions", least=1, odd=True)
    encoder_n_convolutions: int = option(3, "convolutions of the encoder", least=1)
    encoder_embedding_dim: int = option(512, "channels of the encoder; same as --symbols-embedding-dim", least=1)
    attention_rnn_dim: int = option(1024, "units of the attention LSTM", least=1)
    attention_dim: int = option(128, "channels of the attention's hidden layer", least=1)
    attention_location_n_filters: int = option(32, "filters over the attention history", least=1)
    attention_location_kernel_size: int = option(31, "kernel size of the filters over history", least=1, odd=True)
    n_frames_per_step: int = 1
    decoder_rnn_dim: int = option(1024, "units of the decoder LSTM", least=1)
    prenet_dim: int = option(256, "units of the prenet's layers", least=1)
    max_decoder_steps: int = option(2000, "frames after which an utterance is stopped at inference", least=1)
    gate_threshold: float = option(0.5, "gate probability that ends an utterance", least=1e-6, most=1 - 1e-6)
    p_attention_dropout: float = option(0.1, "dropout of the attention LSTM", least=0, below=1)
    p_decoder_dropout: float = option(0.1, "dropout of the decoder LSTM", least=0, below=1)
    postnet_embedding_dim: int = option(512, "channels of the postnet", least=1)
    postnet_kernel_size: int = option(5, "kernel size of the postnet's convolutions", least=1, odd=True)
    postnet_n_convolutions: int = option(5, "convolutions of the postnet", least=1)
    decoder_no_early_stopping: bool = option(False, "always decode --max-decoder-steps frames", negatable=True)
    mask_padding: bool = option(True, "exclude padding from the loss; published models use --no-mask-padding")
    mask_convolutions: bool = option(True, "hide padding from convolutions and batch norm")

    def __post_init__(self) -> None:
        check_options(self)
        if self.n_frames_per_step != 1:
            raise OptionError(f"n_frames_per_step {self.n_frames_per_step}: this decoder makes 1 frame per step")
        if self.symbols_embedding_dim != self.encoder_embedding_dim or self.encoder_embedding_dim % 2:
            raise OptionError("--symbols-embedding-dim, --encoder-embedding-dim: expected one even number for both")

    @property
    def sees_padding(self) -> str | None:
        masking = ("mask_padding", "mask_convolutions")
        return next((f"--no-{name.replace('_', '-')}" for name in masking if not getattr(self, name)), None)
