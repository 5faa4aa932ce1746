"""Jasper: speech to text by convolutions and connectionist temporal classification (arXiv:1904.03288)."""

from common.registry import ModelSpec, RecognizerSpec, TrainingSpec
from jasper import data_function, export, loss_function, options, training_setup, transcribing
from jasper.model import ModelConfig, build_networks
from jasper.published_checkpoints import read_published

MODEL = ModelSpec(
    name="Jasper",
    config=ModelConfig,
    build_networks=build_networks,
    training=TrainingSpec(
        recipe=options.RECIPE,
        options=options.TrainingOptions,
        set_up=training_setup.set_up,
        model_config=training_setup.model_config,
        build_dataset=data_function.build_dataset,
        build_objective=loss_function.build_objective,
        sees_padding=lambda config: None if config.use_conv_masks else "use_conv_masks: false",
    ),
    inference=RecognizerSpec(
        options=options.InferenceOptions,
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
