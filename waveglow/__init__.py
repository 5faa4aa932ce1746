"""WaveGlow: a vocoder that turns Gaussian noise into sound through invertible flows (arXiv:1811.00002)."""

from common.registry import ModelSpec, TrainingSpec, VocoderSpec, deferred
from waveglow import config, options

_package = deferred("waveglow")

MODEL = ModelSpec(
    name="WaveGlow",
    config=config.ModelConfig,
    build_networks=_package.model.build_networks,
    training=TrainingSpec(
        recipe=options.RECIPE,
        options=options.TrainingOptions,
        set_up=_package.training_setup.set_up,
        model_config=_package.training_setup.model_config,
        build_dataset=_package.data_function.WaveGlowDataset,
        build_objective=_package.loss_function.WaveGlowObjective,
    ),
    inference=VocoderSpec(
        settings=_package.model.vocoder_settings,
        options=options.InferenceOptions,
        context=_package.model.context_frames,
    ),
    read_published=_package.published_checkpoints.read_published,
    exports=_package.export.exports,
    from_exported=_package.export.ExportedWaveGlow,
)
