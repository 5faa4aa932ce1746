"""Harmonic: a vocoder of given harmonics and noise, whose small network learns in minutes on a CPU."""

from common.registry import ModelSpec, TrainingSpec, VocoderSpec, deferred
from harmonic import config, options

_package = deferred("harmonic")

MODEL = ModelSpec(
    name="Harmonic",
    config=config.ModelConfig,
    build_networks=_package.model.build_networks,
    training=TrainingSpec(
        recipe=options.RECIPE,
        options=options.TrainingOptions,
        set_up=_package.training_setup.set_up,
        model_config=_package.training_setup.model_config,
        build_dataset=_package.data_function.HarmonicDataset,
        build_objective=_package.loss_function.HarmonicObjective,
    ),
    inference=VocoderSpec(
        settings=_package.model.vocoder_settings,
        options=options.InferenceOptions,
        has_noise=False,
        takes_pitch=True,
        context=_package.model.context_frames,
    ),
    exports=_package.export.exports,
    from_exported=_package.export.ExportedHarmonic,
)
