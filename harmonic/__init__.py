"""Harmonic: a vocoder of given harmonics and noise, whose small network learns in minutes on a CPU."""

from common.registry import ModelSpec, TrainingSpec, VocoderSpec, deferred
from harmonic import arg_parser, config, options

_model, _setup, _export = (deferred(f"harmonic.{name}") for name in ("model", "training_setup", "export"))

MODEL = ModelSpec(
    name="Harmonic",
    config=config.ModelConfig,
    build_networks=_model.build_networks,
    training=TrainingSpec(
        recipe=options.RECIPE,
        options=options.TrainingOptions,
        set_up=_setup.set_up,
        model_config=_setup.model_config,
        build_dataset=deferred("harmonic.data_function").build_dataset,
        build_objective=deferred("harmonic.loss_function").build_objective,
    ),
    inference=VocoderSpec(
        settings=arg_parser.inference_settings,
        parse=arg_parser.parse_inference,
        add_arguments=arg_parser.add_inference_arguments,
        has_noise=False,
        takes_pitch=True,
        context=_model.context_frames,
    ),
    exports=_export.exports,
    signatures=_export.signatures,
    from_exported=_export.ExportedHarmonic,
)
