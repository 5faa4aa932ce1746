"""Jasper: speech to text by convolutions and connectionist temporal classification (arXiv:1904.03288)."""

from common.registry import ModelSpec, RecognizerSpec, TrainingSpec, deferred
from jasper import config, options

_data_function = deferred("jasper.data_function")
_export = deferred("jasper.export")
_loss_function = deferred("jasper.loss_function")
_model = deferred("jasper.model")
_published_checkpoints = deferred("jasper.published_checkpoints")
_training_setup = deferred("jasper.training_setup")
_transcribing = deferred("jasper.transcribing")

MODEL = ModelSpec(
    name="Jasper",
    config=config.ModelConfig,
    build_networks=_model.build_networks,
    training=TrainingSpec(
        recipe=options.RECIPE,
        options=options.TrainingOptions,
        set_up=_training_setup.set_up,
        model_config=_training_setup.model_config,
        build_dataset=_data_function.build_dataset,
        build_objective=_loss_function.build_objective,
        sees_padding=lambda config: None if config.use_conv_masks else "use_conv_masks: false",
    ),
    inference=RecognizerSpec(
        options=options.InferenceOptions,
        settings=_transcribing.settings,
        open_speech=_transcribing.open_speech,
        prepare=_transcribing.prepare,
        transcribe=_transcribing.transcribe,
    ),
    read_published=_published_checkpoints.read_published,
    exports=_export.exports,
    signatures=_export.signatures,
    from_exported=_export.ExportedJasper,
)
