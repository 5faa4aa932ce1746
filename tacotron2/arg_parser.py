"""Options for training Tacotron 2, with the published recipe."""

from dataclasses import dataclass

from common.options import group, option
from common.text.options import TextOptions
from common.training.options import ModelOptions, RunOptions
from tacotron2.config import ModelConfig

RECIPE = RunOptions(
    epochs=1501, batch_size=48, optimizer="adam", learning_rate=1e-3, weight_decay=1e-6, grad_clip_thresh=1.0
)
FACTOR, AMP_FACTOR = 0.1, 0.3  # multiply the learning rate at each annealing step


@dataclass(frozen=True)
class TrainingOptions(ModelOptions):
    """Training options of Tacotron 2."""

    text: TextOptions = group(TextOptions)
    architecture: ModelConfig = group(ModelConfig, "architecture of Tacotron 2")
    load_mel_from_disk: bool = option(False, "lists contain mels, not recordings", variable="LOAD_MEL_FROM_DISK")
    anneal_steps: tuple[int, ...] = option(
        (500, 1000, 1500),
        "epochs after which the learning rate falls",
        least=0,
        empty=True,
        metavar="EPOCHS",
        words={"none": ()},
        variable="ANNEAL_STEPS",
    )
    anneal_factor: float | None = option(
        None, f"rate factor (default: {FACTOR}, with --amp {AMP_FACTOR})", above=0, variable="ANNEAL_FACTOR"
    )
    guided_attention_weight: float = option(0.0, "weight of a loss for diagonal attention; 0: as published", least=0)
    disable_uniform_initialize_bn_weight: bool = option(False, "initialize batch norm weights to 1, not randomly")


@dataclass(frozen=True)
class InferenceOptions:
    """Decoding options; defaults come from the checkpoint."""

    max_decoder_steps: int | None = option(None, "frames after which a phrase is cut, with a warning", least=1)
    gate_threshold: float | None = option(None, "gate probability at which a phrase ends", least=1e-6, most=1 - 1e-6)
