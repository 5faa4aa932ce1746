"""WaveGlow: a vocoder that turns Gaussian noise into sound through invertible flows (arXiv:1811.00002)."""

from common.config import AudioConfig
from common.registry import ModelSpec, TrainingSpec, VocoderSpec
from waveglow import arg_parser, data_function, export, loss_function, model, options, published_checkpoints

MODEL = ModelSpec(
    name="WaveGlow",
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
        context=model.context_frames,
    ),
    read_published=published_checkpoints.read_published,
    published_audio=AudioConfig(),
    exports=export.exports,
    signatures=export.signatures,
    from_exported=export.from_exported,
)
