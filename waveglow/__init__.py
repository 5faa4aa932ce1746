"""WaveGlow: a vocoder that turns Gaussian noise into sound through invertible flows (arXiv:1811.00002)."""

from common.config import AudioConfig
from common.registry import ModelSpec, TrainingSpec, VocoderSpec, deferred
from waveglow import config, options

_data_function = deferred("waveglow.data_function")
_export = deferred("waveglow.export")
_loss_function = deferred("waveglow.loss_function")
_model = deferred("waveglow.model")
_published_checkpoints = deferred("waveglow.published_checkpoints")
_training_setup = deferred("waveglow.training_setup")

MODEL = ModelSpec(
    name="WaveGlow",
    config=config.ModelConfig,
    build_networks=_model.build_networks,
    training=TrainingSpec(
        recipe=options.RECIPE,
        options=options.TrainingOptions,
        set_up=_training_setup.set_up,
        model_config=_training_setup.model_config,
        build_dataset=_data_function.build_dataset,
        build_objective=_loss_function.build_objective,
    ),
    inference=VocoderSpec(
        settings=_model.vocoder_settings, options=options.InferenceOptions, context=_model.context_frames
    ),
    read_published=_published_checkpoints.read_published,
    published_audio=AudioConfig(),
    exports=_export.exports,
    signatures=_export.signatures,
    from_exported=_export.ExportedWaveGlow,
)
