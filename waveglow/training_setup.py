"""Set up WaveGlow training: mels, segments and architecture."""

from dataclasses import replace

from common.audio.mel import MelExtractor
from common.config import AudioConfig
from common.errors import OptionError
from common.training.optim import Optimization, exponential_schedule
from common.training.settings import TrainingRequest, TrainingSetup
from waveglow.arg_parser import TrainingOptions
from waveglow.config import ModelConfig


def set_up(options: TrainingOptions, request: TrainingRequest) -> TrainingSetup:
    """Set up the training run that the options describe, with the mels of --for-voice or the corpus."""
    audio = request.mels(for_voice=options.for_voice)
    shortest = MelExtractor(audio).min_samples
    if options.segment_length < shortest:
        raise OptionError(f"--segment-length {options.segment_length}: a mel needs at least {shortest} samples")
    schedule = exponential_schedule(request.run.learning_rate, decay=1.0)  # constant
    optimization = Optimization(schedule, betas=(0.9, 0.999), eps=1e-8)
    return TrainingSetup(options, audio, text=None, optimization=optimization, same_shapes=True)


def model_config(options: TrainingOptions, audio: AudioConfig, text: None, *, base: ModelConfig | None) -> ModelConfig:
    """Return the default architecture, or the resumed checkpoint's ``base``, changed by the options."""
    return replace(base or ModelConfig(), **options.architecture, n_mel_channels=audio.n_mels)
