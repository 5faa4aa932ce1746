"""Harmonic: a vocoder of given harmonics and noise, whose small network learns in minutes on a CPU."""

from common.registry import ModelSpec, TrainingSpec, VocoderSpec
from harmonic import arg_parser, data_function, export, loss_function, model, options

MODEL = ModelSpec(
    name="Harmonic",
    config=model.ModelConfig,
    build_networks=model.build_networks,
    training=TrainingSpec(
        recipe=arg_parser.RECIPE,
        add_arguments=arg_parser.add_training_arguments,
        parse=arg_parser.parse_training,
        model_config=arg_parser.model_config,
        build_dataset=data_function.build_dataset,
        build_objective=loss_function.build_objective,
    ),
    inference=VocoderSpec(
        settings=model.vocoder_settings,
        options=options.InferenceOptions,
        to_torchscript=model.to_torchscript,
        has_noise=False,
        takes_pitch=True,
        context=model.context_frames,
    ),
    exports=export.exports,
    signatures=export.signatures,
    from_exported=export.ExportedHarmonic,
)
