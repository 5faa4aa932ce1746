"""Jasper: speech to text by convolutions and connectionist temporal classification (arXiv:1904.03288)."""

from common.registry import ModelSpec, RecognizerSpec, TrainingSpec
from jasper import arg_parser, data_function, export, loss_function, transcribing
from jasper.model import ModelConfig, build_networks
from jasper.options import InferenceOptions
from jasper.published_checkpoints import read_published

MODEL = ModelSpec(
    name="Jasper",
    config=ModelConfig,
    build_networks=build_networks,
    training=TrainingSpec(
        recipe=arg_parser.RECIPE,
        add_arguments=arg_parser.add_training_arguments,
        parse=arg_parser.parse_training,
        model_config=arg_parser.model_config,
        build_dataset=data_function.build_dataset,
        build_objective=loss_function.build_objective,
        sees_padding=lambda config: None if config.use_conv_masks else "use_conv_masks: false",
    ),
    inference=RecognizerSpec(
        options=InferenceOptions,
        settings=transcribing.settings,
        open_speech=transcribing.open_speech,
        prepare=transcribing.prepare,
        transcribe=transcribing.transcribe,
    ),
    read_published=read_published,
    exports=export.exports,
    signatures=export.signatures,
    from_exported=export.from_exported,
)
