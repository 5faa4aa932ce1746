"""Harmonic: a vocoder of given harmonics and noise, whose small network learns in minutes on a CPU."""

from common.registry import ModelSpec, TrainingSpec, VocoderSpec, deferred
from harmonic import config, options

_data_function = deferred("harmonic.data_function")
_export = deferred("harmonic.export")
_loss_function = deferred("harmonic.loss_function")
_model = deferred("harmonic.model")
_training_setup = deferred("harmonic.training_setup")

MODEL = ModelSpec(
    name="Harmonic",
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
        settings=_model.vocoder_settings,
        options=options.InferenceOptions,
        has_noise=False,
        takes_pitch=True,
        context=_model.context_frames,
    ),
    exports=_export.exports,
    signatures=_export.signatures,
    from_exported=_export.ExportedHarmonic,
)
