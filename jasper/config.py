"""Jasper's architecture and features, stored in every checkpoint."""

import math
from dataclasses import MISSING, dataclass, field

from common.config import Architecture, AudioConfig
from common.errors import InputError
from common.options import check_options, option

INITIALIZATIONS = ("xavier_uniform", "xavier_normal", "kaiming_uniform", "kaiming_normal")
LABELS = (" ", *"abcdefghijklmnopqrstuvwxyz", "'")


@dataclass(frozen=True)
class FeatureConfig:
    """Log-mel features, with published field names."""

    sample_rate: int = option(16000, "Hz", least=1, most=1_000_000)
    window_size: float = option(0.02, "seconds", above=0, most=1)
    window_stride: float = option(0.01, "seconds", above=0, most=1)
    window: str = option("hann", "window shape", choices=("hann", "hamming", "blackman", "bartlett", "none"))
    normalize: str = option("per_feature", "per band or all together", choices=("per_feature", "all_features", "none"))
    n_fft: int | None = option(512, "samples; None: window length rounded up to a power of 2", least=1, most=2**16)
    preemph: float | None = option(0.97, "share of the previous sample to subtract; None: none")
    n_filt: int = option(64, "mel bands", least=1, most=1024)
    lowfreq: float = option(0.0, "Hz", least=0)
    highfreq: float | None = option(None, "Hz; None: half the sampling rate", above=0)
    log: bool = True
    pad_align: int = option(16, "frames; batches are padded to a multiple of this; 0: no padding", least=0)
    frame_splicing: int = option(1, "stacked frames; only 1 is supported", least=1, most=1)

    def __post_init__(self) -> None:
        check_options(self)
        _ = self.audio  # checks combinations of values

    @property
    def win_length(self) -> int:
        """Samples per window."""
        return int(self.sample_rate * self.window_size)

    @property
    def hop_length(self) -> int:
        """Samples between frames."""
        return int(self.sample_rate * self.window_stride)

    @property
    def fft_length(self) -> int:
        """Samples per Fourier transform."""
        return self.n_fft or 2 ** math.ceil(math.log2(self.win_length))

    @property
    def audio(self) -> AudioConfig:
        """The features' settings as an `AudioConfig`, which every checkpoint holds."""
        sizes = (self.fft_length, self.hop_length, self.win_length, self.n_filt)
        return AudioConfig(self.sample_rate, *sizes, mel_fmin=float(self.lowfreq), mel_fmax=self.highfreq)


@dataclass(frozen=True)
class BlockConfig:
    """One block of the encoder: convolutions, each with batch norm, and residual connections around them."""

    filters: int = option(MISSING, "output channels of each convolution", least=1)
    repeat: int = option(3, "convolutions", least=1)
    kernel_size: int = option(11, "frames", least=1, odd=True)
    stride: int = option(1, "frames", least=1)
    dilation: int = option(1, "frames", least=1)
    dropout: float = option(0.2, "probability", least=0, below=1)
    residual: bool = True  # a connection around the block
    residual_dense: bool = False  # also connections from the inputs of all earlier dense blocks

    def __post_init__(self) -> None:
        check_options(self)
        if self.residual and self.stride > 1:
            raise InputError(f"stride {self.stride} of a residual block: expected 1")


@dataclass(frozen=True)
class ModelConfig(Architecture):
    """Architecture, labels and features, named as in the YAML files."""

    blocks: tuple[BlockConfig, ...]
    activation: str = option("relu", "after each batch norm", choices=("hardtanh", "relu", "selu"))
    use_conv_masks: bool = True  # whether frames past an utterance's end are set to 0 before each convolution
    init: str = option("xavier_uniform", "initialization of the encoder", choices=INITIALIZATIONS)
    decoder_init: str = option("xavier_uniform", "initialization of the decoder", choices=INITIALIZATIONS)
    labels: tuple[str, ...] = LABELS  # without the blank, which follows them
    features: FeatureConfig = field(default_factory=FeatureConfig)

    def __post_init__(self) -> None:
        check_options(self)
        if not self.blocks:
            raise InputError("blocks: expected at least one")

    @property
    def sees_padding(self) -> str | None:
        return None if self.use_conv_masks else "use_conv_masks: false"

    @property
    def blank(self) -> int:
        """The id of CTC's blank, the last of ``n_classes``."""
        return len(self.labels)

    @property
    def n_classes(self) -> int:
        """Number of labels, including the blank."""
        return len(self.labels) + 1

    def n_outputs(self, n_frames: int) -> int:
        """Return the number of output frames for ``n_frames`` of features."""
        for block in self.blocks:
            for _ in range(block.repeat):
                n_frames = -(-n_frames // block.stride)
        return n_frames
