"""WaveGlow: a vocoder that turns Gaussian noise into sound through invertible flows (arXiv:1811.00002)."""

from common.registry import ModelSpec, TrainingSpec, VocoderSpec, deferred
from waveglow import config, options

MODEL = ModelSpec(
    name="WaveGlow",
    config=config.ModelConfig,
    build_networks=deferred("waveglow.model.build_networks"),
    training=TrainingSpec(
        recipe=options.RECIPE,
        options=options.TrainingOptions,
        set_up=deferred("waveglow.training_setup.set_up"),
        model_config=deferred("waveglow.training_setup.model_config"),
        build_dataset=deferred("waveglow.data_function.WaveGlowDataset"),
        build_objective=deferred("waveglow.loss_function.WaveGlowObjective"),
    ),
    inference=VocoderSpec(
        settings=deferred("waveglow.model.vocoder_settings"),
        options=options.InferenceOptions,
        context=deferred("waveglow.model.context_frames"),
    ),
    read_published=deferred("waveglow.published_checkpoints.read_published"),
    exports=deferred("waveglow.export.exports"),
    from_exported=deferred("waveglow.export.ExportedWaveGlow"),
)
