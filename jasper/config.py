"""Jasper's architecture and features (in every checkpoint), and how a training run reads and perturbs recordings."""

import math
from dataclasses import MISSING, dataclass, field

from common.config import AudioConfig
from common.errors import InputError, shown
from common.options import check_options, option
from jasper.augmentation import Augmentation, Ranged

INITIALIZATIONS = ("xavier_uniform", "xavier_normal", "kaiming_uniform", "kaiming_normal")
LABELS = (" ", *"abcdefghijklmnopqrstuvwxyz", "'")


@dataclass(frozen=True)
class FeatureConfig:
    """Log-mel features; names are the published ones.

    Raises:
        InputError: values that do not fit together; names the field.
    """

    sample_rate: int = option(16000, "Hz", least=1, most=1_000_000)
    window_size: float = option(0.02, "seconds", above=0, most=1)
    window_stride: float = option(0.01, "seconds", above=0, most=1)
    window: str = option("hann", "shape of a window", choices=("hann", "hamming", "blackman", "bartlett", "none"))
    normalize: str = option(
        "per_feature",
        "over an utterance's frames, of each band or of all together",
        choices=("per_feature", "all_features", "none"),
    )
    n_fft: int | None = option(512, "samples; None: the next power of two from a window's", least=1, most=2**16)
    preemph: float | None = option(0.97, "share of the previous sample that is subtracted; None: none")
    n_filt: int = option(64, "mel bands", least=1, most=1024)
    lowfreq: float = option(0.0, "Hz", least=0)
    highfreq: float | None = option(None, "Hz; None: half the sampling rate", above=0)
    log: bool = True
    pad_align: int = option(16, "frames; batches are padded to a multiple of it; 0: not at all", least=0)
    frame_splicing: int = option(1, "neighboring frames that are stacked into one", least=1, most=100)

    def __post_init__(self) -> None:
        check_options(self)
        if self.fft_length < self.win_length:
            raise InputError(f"n_fft {self.n_fft}: expected at least a window's {self.win_length} samples")
        top = self.sample_rate / 2 if self.highfreq is None else self.highfreq
        if not self.lowfreq < top <= self.sample_rate / 2:
            raise InputError(
                f"lowfreq {self.lowfreq} Hz and highfreq {top} Hz: expected lowfreq < highfreq <= "
                f"{self.sample_rate / 2} Hz, half of sample_rate"
            )

    @property
    def win_length(self) -> int:
        """Samples of a window."""
        return int(self.sample_rate * self.window_size)

    @property
    def hop_length(self) -> int:
        """Samples between frames."""
        return int(self.sample_rate * self.window_stride)

    @property
    def fft_length(self) -> int:
        """Samples of a Fourier transform."""
        return self.n_fft or 2 ** math.ceil(math.log2(self.win_length))

    @property
    def n_features(self) -> int:
        """Input channels of the network."""
        return self.n_filt * self.frame_splicing

    @property
    def audio(self) -> AudioConfig:
        """The features' settings as an `AudioConfig`, which every checkpoint holds."""
        return AudioConfig(
            sampling_rate=self.sample_rate,
            filter_length=self.fft_length,
            hop_length=self.hop_length,
            win_length=self.win_length,
            n_mels=self.n_filt,
            mel_fmin=float(self.lowfreq),
            mel_fmax=self.highfreq,
        )


@dataclass(frozen=True)
class BlockConfig:
    """One block of the encoder: convolutions, each with batch norm, and residual connections around them."""

    filters: int = option(MISSING, "output channels of each convolution", least=1)
    repeat: int = option(3, "convolutions", least=1)
    kernel_size: int = option(11, "frames", least=1)
    stride: int = option(1, "frames", least=1)
    dilation: int = option(1, "frames", least=1)
    dropout: float = option(0.2, "probability", least=0, below=1)
    residual: bool = True  # a connection around the block
    residual_dense: bool = False  # that, and one from the input of every earlier dense block

    def __post_init__(self) -> None:
        check_options(self)
        if self.residual and (self.stride > 1 or self.kernel_size % 2 == 0):
            raise InputError(
                f"kernel_size {self.kernel_size} and stride {self.stride} of a residual block: "
                "expected an odd one and 1, as the residual connection keeps its length"
            )

    @property
    def padding(self) -> int:
        """Frames of zeros on either side of each convolution's input."""
        return self.kernel_size // 2 * self.dilation


@dataclass(frozen=True)
class ModelConfig:
    """Architecture, labels and features; names are those of the YAML files.

    Raises:
        InputError: values that do not fit together; names the field.
    """

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
        if not self.labels or any(len(label) != 1 for label in self.labels) or len(set(self.labels)) < len(self.labels):
            raise InputError(f"labels {shown(list(self.labels))}: expected single characters, each once")

    @property
    def n_classes(self) -> int:
        """Labels and the blank."""
        return len(self.labels) + 1

    def n_outputs(self, n_frames: int) -> int:
        """Frames of output for so many frames of features."""
        for block in self.blocks:
            for _ in range(block.repeat):
                n_frames = (n_frames + 2 * block.padding - block.dilation * (block.kernel_size - 1) - 1) // block.stride
                n_frames += 1
        return n_frames


@dataclass(frozen=True, kw_only=True)
class _Perturbation(Ranged):
    """A random change of a recording."""

    p: float = option(0.1, "probability that an utterance is changed", least=0, most=1)
    rng: None = None  # in published files, without a meaning


@dataclass(frozen=True)
class SpeedPerturbation(_Perturbation):
    """Faster or slower speech, tempo and pitch together; a rate above 1 is faster."""

    min_rate: float = option(0.85, "slowest", above=0)
    max_rate: float = option(1.15, "fastest", above=0)
    discrete: bool = False  # one of min_rate, 1 and max_rate; else any between them


@dataclass(frozen=True)
class GainPerturbation(_Perturbation):
    """Louder or softer speech."""

    min_gain_dbfs: float = -10
    max_gain_dbfs: float = 10


@dataclass(frozen=True)
class ShiftPerturbation(_Perturbation):
    """Earlier (positive) or later speech; the rest is filled with zeros."""

    min_shift_ms: float = -5.0
    max_shift_ms: float = 5.0


@dataclass(frozen=True)
class DatasetSettings(Ranged):
    """Which recordings of a list are used, and how they are read and perturbed; ``audio_dataset`` in YAML."""

    sample_rate: int = 16000  # Hz
    min_duration: float = 0.1  # s; shorter recordings are left out
    max_duration: float = math.inf  # s; longer ones too
    pad_to_max_duration: bool = False  # whether all batches are padded to max_duration
    max_utts: int = 0  # recordings to use at most; 0: all
    normalize_transcripts: bool = True
    trim_silence: bool = False  # leave out both ends as far as they are 60 dB below the loudest part
    speed_perturbation: SpeedPerturbation | None = None
    gain_perturbation: GainPerturbation | None = None
    shift_perturbation: ShiftPerturbation | None = None
    ignore_offline_speed_perturbation: bool = False  # whether of copies at several speeds only the original is used
    sort_by_duration: bool = False  # of published files; batches are length-bucketed anyway

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pad_to_max_duration and math.isinf(self.max_duration):
            raise InputError("pad_to_max_duration: expected a max_duration too")


@dataclass(frozen=True)
class FilterbankSettings(FeatureConfig, Augmentation):
    """The features of recordings and their augmentation; ``filterbank_features`` in YAML, with published defaults."""

    sample_rate: int = 8000  # Hz
    window: str = "hamming"
    n_fft: int | None = None
    pad_align: int = 8  # frames
    max_duration: float = math.inf  # s
    pad_to_max_duration: bool = False


@dataclass(frozen=True)
class InputSettings:
    """How recordings of training or validation are read; ``input_train`` and ``input_val`` in YAML."""

    audio_dataset: DatasetSettings
    filterbank_features: FilterbankSettings


@dataclass(frozen=True)
class JasperSettings:
    """The contents of a YAML file."""

    model: ModelConfig
    train: InputSettings
    val: InputSettings
