"""Jasper: speech to text by convolutions and connectionist temporal classification (arXiv:1904.03288)."""

from common.registry import ModelSpec, RecognizerSpec, TrainingSpec, deferred
from jasper import config, options

MODEL = ModelSpec(
    name="Jasper",
    config=config.ModelConfig,
    build_networks=deferred("jasper.model.build_networks"),
    training=TrainingSpec(
        recipe=options.RECIPE,
        options=options.TrainingOptions,
        set_up=deferred("jasper.training_setup.set_up"),
        model_config=deferred("jasper.training_setup.model_config"),
        build_dataset=deferred("jasper.data_function.JasperDataset"),
        build_objective=deferred("jasper.loss_function.build_objective"),
        adapt=deferred("jasper.training_setup.adapt"),
        sees_padding=lambda config: None if config.use_conv_masks else "use_conv_masks: false",
    ),
    inference=RecognizerSpec(
        options=options.InferenceOptions,
        settings=deferred("jasper.transcribing.settings"),
        open_speech=deferred("jasper.transcribing.open_speech"),
        prepare=deferred("jasper.transcribing.prepare"),
        transcribe=deferred("jasper.transcribing.transcribe"),
    ),
    read_published=deferred("jasper.published_checkpoints.read_published"),
    exports=deferred("jasper.export.exports"),
    from_exported=deferred("jasper.export.ExportedJasper"),
)
