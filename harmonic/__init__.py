"""Harmonic: a vocoder of given harmonics and noise, whose small network learns in minutes on a CPU."""

from common.registry import ModelSpec, TrainingSpec, VocoderSpec, deferred
from harmonic import config, options

MODEL = ModelSpec(
    name="Harmonic",
    config=config.ModelConfig,
    build_networks=deferred("harmonic.model.build_networks"),
    training=TrainingSpec(
        recipe=options.RECIPE,
        options=options.TrainingOptions,
        set_up=deferred("harmonic.training_setup.set_up"),
        model_config=deferred("harmonic.training_setup.model_config"),
        build_dataset=deferred("harmonic.data_function.HarmonicDataset"),
        build_objective=deferred("harmonic.loss_function.HarmonicObjective"),
    ),
    inference=VocoderSpec(
        settings=deferred("harmonic.model.vocoder_settings"),
        options=options.InferenceOptions,
        has_noise=False,
        takes_pitch=True,
        context=deferred("harmonic.model.context_frames"),
    ),
    exports=deferred("harmonic.export.exports"),
    from_exported=deferred("harmonic.export.ExportedHarmonic"),
)
