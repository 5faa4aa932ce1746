"""FastPitch: parallel text-to-mel synthesis with explicit duration and pitch (arXiv:2006.06873)."""

from common.registry import GeneratorSpec, ModelSpec, TrainingSpec, deferred
from fastpitch import config, options

_package = deferred("fastpitch")

MODEL = ModelSpec(
    name="FastPitch",
    config=config.ModelConfig,
    build_networks=_package.model.build_networks,
    training=TrainingSpec(
        recipe=options.RECIPE,
        options=options.TrainingOptions,
        set_up=_package.training_setup.set_up,
        defaults=_package.training_setup.defaults_of_voice,
        model_config=_package.training_setup.model_config,
        build_dataset=_package.data_function.build_dataset,
        build_objective=_package.loss_function.build_objective,
        set_up_networks=_package.fine_tuning.set_up_networks,
        compute_statistics=_package.data_function.compute_statistics,
        sees_padding=lambda config: None if config.mask_convolutions else "mask_convolutions=False of the checkpoint",
        starts_from_checkpoint=True,
    ),
    inference=GeneratorSpec(
        options=options.InferenceOptions,
        controls=_package.prosody_transforms.controls,
        to_torchscript=_package.model.to_torchscript,
        n_speakers=lambda config: config.n_speakers,
        phrase_columns=("pitch", "duration"),
        teacher_forced_dataset=_package.data_function.teacher_forced_dataset,
        list_columns=lambda config: "audio_text" if config.learned_alignment else "mel_dur_pitch_text",
    ),
    read_published=_package.published_checkpoints.read_published,
    exports=_package.export.exports,
    from_exported=_package.export.ExportedFastPitch,
)
