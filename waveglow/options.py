"""Options of WaveGlow."""

from dataclasses import dataclass

from common.options import option

SIGMA_INFER = 0.9  # standard deviation of the noise that becomes sound, as published


@dataclass(frozen=True)
class InferenceOptions:
    """How WaveGlow makes sound."""

    wn_channels: int | None = option(None, "channels of its networks; a checkpoint of other widths is refused", least=1)
    sigma_infer: float = option(
        SIGMA_INFER,
        "standard deviation of the noise that becomes sound",
        least=0,
        most=100,
        published=("-s", "--waveglow-sigma-infer"),
    )
    chunk_frames: int | None = option(
        None,
        "compute so many mel frames at a time, in memory that hardly grows with the length; the sound is the same",
        least=1,
    )
