"""Options of Tacotron 2."""

from dataclasses import dataclass

from common.options import option


@dataclass(frozen=True)
class InferenceOptions:
    """How to decode; the defaults are those of the checkpoint."""

    max_decoder_steps: int | None = option(
        None, "frames after which a phrase is cut that the model has not ended; a warning names it", least=1
    )
    gate_threshold: float | None = option(
        None, "probability, below 1, at which a phrase ends", least=1e-6, most=1 - 1e-6
    )
