"""HiFi-GAN: a vocoder trained against multi-period and multi-scale discriminators (arXiv:2010.05646)."""

from common.registry import ModelSpec, TrainingSpec, VocoderSpec, deferred
from hifigan import config, options

MODEL = ModelSpec(
    name="HiFi-GAN",
    config=config.ModelConfig,
    build_networks=deferred("hifigan.model.build_networks"),
    training=TrainingSpec(
        recipe=options.RECIPE,
        options=options.TrainingOptions,
        set_up=deferred("hifigan.training_setup.set_up"),
        defaults=deferred("hifigan.training_setup.defaults_of_file"),
        model_config=deferred("hifigan.training_setup.model_config"),
        build_dataset=deferred("hifigan.data_function.HifiganDataset"),
        build_objective=deferred("hifigan.loss_function.HifiganObjective"),
        set_up_networks=deferred("hifigan.model.set_up_networks"),
    ),
    inference=VocoderSpec(
        to_torchscript=deferred("hifigan.model.to_torchscript"), context=deferred("hifigan.model.context_frames")
    ),
    read_published=deferred("hifigan.published_checkpoints.read_published"),
    exports=deferred("hifigan.export.exports"),
    from_exported=deferred("common.checkpoints.exported.ExportedVocoder"),
)
