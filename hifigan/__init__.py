"""HiFi-GAN: a vocoder trained against multi-period and multi-scale discriminators (arXiv:2010.05646)."""

from common.config import AudioConfig
from common.registry import ModelSpec, TrainingSpec, VocoderSpec, deferred
from hifigan import config, options

_package = deferred("hifigan")

MODEL = ModelSpec(
    name="HiFi-GAN",
    config=config.ModelConfig,
    build_networks=_package.model.build_networks,
    training=TrainingSpec(
        recipe=options.RECIPE,
        options=options.TrainingOptions,
        set_up=_package.training_setup.set_up,
        defaults=_package.training_setup.defaults_of_file,
        model_config=_package.training_setup.model_config,
        build_dataset=_package.data_function.HifiganDataset,
        build_objective=_package.loss_function.HifiganObjective,
        set_up_networks=_package.model.set_up_networks,
    ),
    inference=VocoderSpec(to_torchscript=_package.model.to_torchscript, context=_package.model.context_frames),
    read_published=_package.published_checkpoints.read_published,
    published_audio=AudioConfig(**config.PUBLISHED_MELS),
    exports=_package.export.exports,
    from_exported=deferred("common").checkpoints.ExportedVocoder,
)
