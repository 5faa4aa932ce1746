"""Jasper: speech to text by convolutions and connectionist temporal classification (arXiv:1904.03288)."""

from common.registry import ModelSpec, RecognizerSpec, TrainingSpec, deferred
from jasper import config, options

_package = deferred("jasper")

MODEL = ModelSpec(
    name="Jasper",
    config=config.ModelConfig,
    build_networks=_package.model.build_networks,
    training=TrainingSpec(
        recipe=options.RECIPE,
        options=options.TrainingOptions,
        set_up=_package.training_setup.set_up,
        model_config=_package.training_setup.model_config,
        build_dataset=_package.data_function.JasperDataset,
        build_objective=_package.loss_function.build_objective,
        sees_padding=lambda config: None if config.use_conv_masks else "use_conv_masks: false",
    ),
    inference=RecognizerSpec(
        options=options.InferenceOptions,
        settings=_package.transcribing.settings,
        open_speech=_package.transcribing.open_speech,
        prepare=_package.transcribing.prepare,
        transcribe=_package.transcribing.transcribe,
    ),
    read_published=_package.published_checkpoints.read_published,
    exports=_package.export.exports,
    from_exported=_package.export.ExportedJasper,
)
