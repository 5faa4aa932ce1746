"""Tacotron 2: text to mel-spectrogram, one frame after the other, with attention."""

from common.config import AudioConfig
from common.registry import GeneratorSpec, ModelSpec, TrainingSpec, deferred
from tacotron2 import config, options

_data_function = deferred("tacotron2.data_function")
_export = deferred("tacotron2.export")
_inference = deferred("tacotron2.inference")
_loss_function = deferred("tacotron2.loss_function")
_model = deferred("tacotron2.model")
_published_checkpoints = deferred("tacotron2.published_checkpoints")
_training_setup = deferred("tacotron2.training_setup")

MODEL = ModelSpec(
    name="Tacotron2",
    config=config.ModelConfig,
    build_networks=_model.build_networks,
    training=TrainingSpec(
        recipe=options.RECIPE,
        options=options.TrainingOptions,
        set_up=_training_setup.set_up,
        defaults=_training_setup.defaults_of_checkpoint,
        model_config=_training_setup.model_config,
        build_dataset=_data_function.build_dataset,
        build_objective=_loss_function.build_objective,
        set_up_networks=_training_setup.set_up_networks,
        sees_padding=_training_setup.sees_padding,
    ),
    inference=GeneratorSpec(
        options=options.InferenceOptions,
        controls=_inference.controls,
        not_compilable="Tacotron2's decoder, one frame after the other, cannot be compiled",
        teacher=_model.teach,
        teacher_forced_dataset=_data_function.teacher_forced_dataset,
    ),
    read_published=_published_checkpoints.read_published,
    published_audio=AudioConfig(),
    exports=_export.exports,
    signatures=_export.signatures,
    from_exported=_export.ExportedTacotron2,
)
