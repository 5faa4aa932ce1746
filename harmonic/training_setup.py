"""Set up Harmonic training: mels, segments, architecture and schedule."""

import math
from dataclasses import replace

from common.config import AudioConfig
from common.errors import OptionError
from common.nn.discriminator_config import DiscriminatorConfig
from common.training.optim import Optimization, Schedule
from common.training.settings import TrainingRequest, TrainingSetup, stored_mels
from harmonic.arg_parser import TrainingOptions
from harmonic.config import ModelConfig

_WARM_UP = 50  # updates


def set_up(options: TrainingOptions, request: TrainingRequest) -> TrainingSetup:
    """Set up the training run that the options describe, with the mels of --for-voice or the corpus."""
    options.check_fine_tuning()
    source = stored_mels(options.input_mels_dir, option="--input-mels-dir")
    run, audio = request.run, request.mels(source, for_voice=options.for_voice)
    shortest = -(-2 * audio.filter_length // audio.hop_length)
    if options.segment_frames < shortest:
        raise OptionError(f"--segment-frames {options.segment_frames}: the loss needs at least {shortest} frames")
    schedule = cosine_schedule(run.learning_rate, n_epochs=run.epochs)
    optimization = Optimization(schedule, betas=(0.9, 0.99), eps=1e-8)
    return TrainingSetup(options, audio, text=None, optimization=optimization, same_shapes=True)


def cosine_schedule(learning_rate: float, *, n_epochs: int) -> Schedule:
    """Linear warm-up over ``_WARM_UP`` updates, then half a cosine down to a hundredth at the last update."""

    def rate(iteration: int, epoch: int, steps_per_epoch: int = 1) -> float:
        done = min(max(iteration - _WARM_UP, 0) / max(n_epochs * steps_per_epoch - _WARM_UP, 1), 1.0)
        return learning_rate * min(iteration / _WARM_UP, 1.0) * (0.505 + 0.495 * math.cos(math.pi * done))

    return rate


def model_config(options: TrainingOptions, audio: AudioConfig, text: None, *, base: ModelConfig | None) -> ModelConfig:
    """Return the default architecture, or the resumed checkpoint's ``base``, changed by the options."""
    config = replace(base or ModelConfig(), **options.architecture, n_mel_channels=audio.n_mels)
    if options.adversarial:
        discriminators = replace(config.discriminators or DiscriminatorConfig(), **options.discriminators)
        config = replace(config, discriminators=discriminators)
    return config
