"""What the options mean."""

from common.config import AudioConfig
from common.text.config import TextConfig
from common.text.front_end import TextFrontEnd
from common.text.options import text_config
from common.training.optim import Optimization
from common.training.settings import TrainingRequest, TrainingSetup
from toy_vits.arg_parser import TrainingOptions
from toy_vits.config import ModelConfig


def set_up(options: TrainingOptions, request: TrainingRequest) -> TrainingSetup:
    """The mels and the text of the options, and a constant rate."""
    optimization = Optimization(schedule=lambda iteration, epoch, n_steps: request.run.learning_rate)
    return TrainingSetup(options, request.mels(), text_config(options.text), optimization)


def model_config(
    options: TrainingOptions, audio: AudioConfig, text: TextConfig, *, base: ModelConfig | None
) -> ModelConfig:
    """The architecture of the options."""
    return ModelConfig(audio.n_mels, TextFrontEnd(text).n_symbols, audio.hop_length, options.channels)
