"""Tacotron 2: text to mel-spectrogram, one frame after the other, with attention."""

from common.registry import GeneratorSpec, ModelSpec, TrainingSpec, deferred
from tacotron2 import config, options

_package = deferred("tacotron2")

MODEL = ModelSpec(
    name="Tacotron2",
    config=config.ModelConfig,
    build_networks=_package.model.build_networks,
    training=TrainingSpec(
        recipe=options.RECIPE,
        options=options.TrainingOptions,
        set_up=_package.training_setup.set_up,
        defaults=_package.training_setup.defaults_of_checkpoint,
        model_config=_package.training_setup.model_config,
        build_dataset=_package.data_function.build_dataset,
        build_objective=_package.loss_function.Tacotron2Objective,
        set_up_networks=_package.training_setup.set_up_networks,
        sees_padding=_package.training_setup.sees_padding,
    ),
    inference=GeneratorSpec(
        options=options.InferenceOptions,
        controls=_package.inference.controls,
        not_compilable="Tacotron2's decoder, one frame after the other, cannot be compiled",
        teacher=_package.model.teach,
        teacher_forced_dataset=_package.data_function.teacher_forced_dataset,
    ),
    read_published=_package.published_checkpoints.read_published,
    exports=_package.export.exports,
    from_exported=_package.export.ExportedTacotron2,
)
