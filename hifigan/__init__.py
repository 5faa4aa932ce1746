"""HiFi-GAN: a vocoder trained against multi-period and multi-scale discriminators (arXiv:2010.05646)."""

from common.config import AudioConfig
from common.registry import ModelSpec, TrainingSpec, VocoderSpec, deferred
from hifigan import config, options

_data_function = deferred("hifigan.data_function")
_export = deferred("hifigan.export")
_loss_function = deferred("hifigan.loss_function")
_model = deferred("hifigan.model")
_published_checkpoints = deferred("hifigan.published_checkpoints")
_training_setup = deferred("hifigan.training_setup")

MODEL = ModelSpec(
    name="HiFi-GAN",
    config=config.ModelConfig,
    build_networks=_model.build_networks,
    training=TrainingSpec(
        recipe=options.RECIPE,
        options=options.TrainingOptions,
        set_up=_training_setup.set_up,
        defaults=_training_setup.defaults_of_file,
        model_config=_training_setup.model_config,
        build_dataset=_data_function.build_dataset,
        build_objective=_loss_function.build_objective,
        set_up_networks=_model.set_up_networks,
    ),
    inference=VocoderSpec(to_torchscript=_model.to_torchscript, context=_model.context_frames),
    read_published=_published_checkpoints.read_published,
    published_audio=AudioConfig(**config.PUBLISHED_MELS),
    exports=_export.exports,
    signatures=_export.signatures,
    from_exported=_export.ExportedGenerator,
)
