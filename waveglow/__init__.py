"""WaveGlow: a vocoder that turns Gaussian noise into sound through invertible flows (arXiv:1811.00002)."""

from common.config import AudioConfig
from common.registry import ModelSpec, TrainingSpec, VocoderSpec
from waveglow import (
    arg_parser,
    data_function,
    export,
    loss_function,
    model,
    options,
    published_checkpoints,
    training_setup,
)

MODEL = ModelSpec(
    name="WaveGlow",
    config=model.ModelConfig,
    build_networks=model.build_networks,
    training=TrainingSpec(
        recipe=options.RECIPE,
        options=options.TrainingOptions,
        set_up=training_setup.set_up,
        model_config=training_setup.model_config,
        build_dataset=data_function.build_dataset,
        build_objective=loss_function.build_objective,
    ),
    inference=VocoderSpec(
        settings=arg_parser.inference_settings,
        parse=arg_parser.parse_inference,
        add_arguments=arg_parser.add_inference_arguments,
        to_torchscript=model.to_torchscript,
        context=model.context_frames,
    ),
    read_published=published_checkpoints.read_published,
    published_audio=AudioConfig(),
    exports=export.exports,
    signatures=export.signatures,
    from_exported=export.from_exported,
)
