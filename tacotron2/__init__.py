"""Tacotron 2: text to mel-spectrogram, one frame after the other, with attention."""

from common.registry import GeneratorSpec, ModelSpec, TrainingSpec, deferred
from tacotron2 import config, options

MODEL = ModelSpec(
    name="Tacotron2",
    config=config.ModelConfig,
    build_networks=deferred("tacotron2.model.build_networks"),
    training=TrainingSpec(
        recipe=options.RECIPE,
        options=options.TrainingOptions,
        set_up=deferred("tacotron2.training_setup.set_up"),
        defaults=deferred("tacotron2.training_setup.defaults_of_checkpoint"),
        model_config=deferred("tacotron2.training_setup.model_config"),
        build_dataset=deferred("tacotron2.data_function.build_dataset"),
        build_objective=deferred("tacotron2.loss_function.Tacotron2Objective"),
        set_up_networks=deferred("tacotron2.training_setup.set_up_networks"),
        adapt=deferred("tacotron2.training_setup.adapt"),
        sees_padding=deferred("tacotron2.training_setup.sees_padding"),
    ),
    inference=GeneratorSpec(
        options=options.InferenceOptions,
        controls=deferred("tacotron2.inference.controls"),
        not_compilable="Tacotron2's decoder, one frame after the other, cannot be compiled",
        teacher=deferred("tacotron2.model.teach"),
        teacher_forced_dataset=deferred("tacotron2.data_function.teacher_forced_dataset"),
    ),
    read_published=deferred("tacotron2.published_checkpoints.read_published"),
    exports=deferred("tacotron2.export.exports"),
    from_exported=deferred("tacotron2.export.ExportedTacotron2"),
)
