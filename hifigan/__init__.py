"""HiFi-GAN: a vocoder trained against multi-period and multi-scale discriminators (arXiv:2010.05646)."""

from common.config import AudioConfig
from common.registry import ModelSpec, TrainingSpec, VocoderSpec
from hifigan import arg_parser, config, data_function, export, loss_function, model, published_checkpoints

MODEL = ModelSpec(
    name="HiFi-GAN",
    config=model.ModelConfig,
    build_networks=model.build_networks,
    training=TrainingSpec(
        recipe=arg_parser.RECIPE,
        add_arguments=arg_parser.add_training_arguments,
        parse=arg_parser.parse_training,
        model_config=arg_parser.model_config,
        build_dataset=data_function.build_dataset,
        build_objective=loss_function.build_objective,
        set_up_networks=model.set_up_networks,
    ),
    inference=VocoderSpec(to_torchscript=model.to_torchscript, context=model.context_frames),
    read_published=published_checkpoints.read_published,
    published_audio=AudioConfig(**config.PUBLISHED_MELS),
    exports=export.exports,
    signatures=export.signatures,
    from_exported=export.ExportedGenerator,
)
