"""Options of the harmonic vocoder."""

from dataclasses import dataclass

from common.options import option

MEL_CORRECTIONS = 2  # at inference


@dataclass(frozen=True)
class InferenceOptions:
    """How the harmonic vocoder makes sound."""

    mel_corrections: int = option(
        MEL_CORRECTIONS,
        "rounds that bring the mel of the sound nearer to the one it is made of; many bring back Griffin-Lim's noise",
        least=0,
        most=100,
    )
