"""FastPitch's architecture, and the options that configure it."""

from dataclasses import dataclass

from common.config import Architecture
from common.errors import OptionError
from common.options import check_options, option


@dataclass(frozen=True)
class ModelConfig(Architecture):
    """FastPitch's architecture, with published field names; ``learned_alignment`` turns version 1.0 into 1.1."""

    n_mel_channels: int = 80
    symbol_type: str = "char"  # same as TextConfig.input_type; pf: vectors of phonological features instead of ids
    n_symbols: int = 148  # number of symbols, or of features per vector
    padding_idx: int = 0
    symbols_embedding_dim: int = option(384, "channels of encoder and decoder", least=1)
    in_fft_n_layers: int = option(6, "Transformer blocks of the encoder", least=1)
    in_fft_n_heads: int = option(1, "attention heads of the encoder", least=1)
    in_fft_d_head: int = option(64, "channels of an attention head of the encoder", least=1)
    in_fft_conv1d_kernel_size: int = option(3, "kernel size of the encoder's convolutions", least=1, odd=True)
    in_fft_conv1d_filter_size: int = option(1536, "filters between the encoder's convolutions", least=1)
    in_fft_output_size: int = option(384, "output channels of the encoder; same as --symbols-embedding-dim", least=1)
    p_in_fft_dropout: float = option(0.1, "dropout in the encoder", least=0, below=1)
    p_in_fft_dropatt: float = option(0.1, "dropout of the encoder's attention", least=0, below=1)
    p_in_fft_dropemb: float = option(0.0, "dropout of the encoder's input", least=0, below=1)
    out_fft_n_layers: int = option(6, "Transformer blocks of the decoder", least=1)
    out_fft_n_heads: int = option(1, "attention heads of the decoder", least=1)
    out_fft_d_head: int = option(64, "channels of an attention head of the decoder", least=1)
    out_fft_conv1d_kernel_size: int = option(3, "kernel size of the decoder's convolutions", least=1, odd=True)
    out_fft_conv1d_filter_size: int = option(1536, "filters between the decoder's convolutions", least=1)
    out_fft_output_size: int = option(384, "output channels of the decoder; same as --symbols-embedding-dim", least=1)
    p_out_fft_dropout: float = option(0.1, "dropout in the decoder", least=0, below=1)
    p_out_fft_dropatt: float = option(0.1, "dropout of the decoder's attention", least=0, below=1)
    p_out_fft_dropemb: float = option(0.0, "dropout of the decoder's input", least=0, below=1)
    dur_predictor_kernel_size: int = option(3, "kernel size of the duration predictor", least=1, odd=True)
    dur_predictor_filter_size: int = option(256, "filters of the duration predictor", least=1)
    p_dur_predictor_dropout: float = option(0.1, "dropout of the duration predictor", least=0, below=1)
    dur_predictor_n_layers: int = option(2, "convolutions of the duration predictor", least=1)
    pitch_predictor_kernel_size: int = option(3, "kernel size of the pitch predictor", least=1, odd=True)
    pitch_predictor_filter_size: int = option(256, "filters of the pitch predictor", least=1)
    p_pitch_predictor_dropout: float = option(0.1, "dropout of the pitch predictor", least=0, below=1)
    pitch_predictor_n_layers: int = option(2, "convolutions of the pitch predictor", least=1)
    pitch_embedding_kernel_size: int = option(3, "kernel size of the pitch embedding", least=1, odd=True)
    learned_alignment: bool = option(False, "learn durations from data", negatable=True, variable="LEARNED_ALIGNMENT")
    energy_conditioning: bool = option(False, "predict the energy of symbols", negatable=True, variable="ENERGY")
    energy_predictor_kernel_size: int = option(3, "kernel size of the energy predictor", least=1, odd=True)
    energy_predictor_filter_size: int = option(256, "filters of the energy predictor", least=1)
    p_energy_predictor_dropout: float = option(0.1, "dropout of the energy predictor", least=0, below=1)
    energy_predictor_n_layers: int = option(2, "convolutions of the energy predictor", least=1)
    energy_embedding_kernel_size: int = option(3, "kernel size of the energy embedding", least=1, odd=True)
    adversarial: bool = option(False, "also train against a mel discriminator", negatable=True, variable="ADVERSARIAL")
    n_speakers: int = 1
    speaker_emb_weight: float = option(1.0, "scale of the speaker embedding", least=-1e6, most=1e6)
    pitch_statistics_per_speaker: bool = False  # normalize the pitch of each speaker by its own statistics
    mask_convolutions: bool = True  # False: convolutions see padding, as in the original

    def __post_init__(self) -> None:
        check_options(self)
        width = self.symbols_embedding_dim
        if not width == self.in_fft_output_size == self.out_fft_output_size or width % 2:
            names = "--symbols-embedding-dim, --in-fft-output-size, --out-fft-output-size"
            raise OptionError(f"{names}: expected one even number for all")

    @property
    def sees_padding(self) -> str | None:
        return None if self.mask_convolutions else "mask_convolutions=False of the checkpoint"

    @property
    def has_aligner(self) -> bool:
        return self.learned_alignment

    @property
    def list_columns(self) -> str:
        return "audio_text" if self.learned_alignment else "mel_dur_pitch_text"
