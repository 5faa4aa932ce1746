"""FastPitch: parallel text-to-mel synthesis with explicit duration and pitch (arXiv:2006.06873)."""

from common.config import AudioConfig
from common.registry import GeneratorSpec, ModelSpec, TrainingSpec, deferred
from fastpitch import config, options

_data_function = deferred("fastpitch.data_function")
_export = deferred("fastpitch.export")
_fine_tuning = deferred("fastpitch.fine_tuning")
_loss_function = deferred("fastpitch.loss_function")
_model = deferred("fastpitch.model")
_prosody_transforms = deferred("fastpitch.prosody_transforms")
_published_checkpoints = deferred("fastpitch.published_checkpoints")
_training_setup = deferred("fastpitch.training_setup")

MODEL = ModelSpec(
    name="FastPitch",
    config=config.ModelConfig,
    build_networks=_model.build_networks,
    training=TrainingSpec(
        recipe=options.RECIPE,
        options=options.TrainingOptions,
        set_up=_training_setup.set_up,
        defaults=_training_setup.defaults_of_voice,
        model_config=_training_setup.model_config,
        build_dataset=_data_function.build_dataset,
        build_objective=_loss_function.build_objective,
        set_up_networks=_fine_tuning.set_up_networks,
        compute_statistics=_data_function.compute_statistics,
        sees_padding=lambda config: None if config.mask_convolutions else "mask_convolutions=False of the checkpoint",
        starts_from_checkpoint=True,
    ),
    inference=GeneratorSpec(
        options=options.InferenceOptions,
        controls=_prosody_transforms.controls,
        to_torchscript=_model.to_torchscript,
        n_speakers=lambda config: config.n_speakers,
        phrase_columns=("pitch", "duration"),
        teacher_forced_dataset=_data_function.teacher_forced_dataset,
        list_columns=lambda config: "audio_text" if config.learned_alignment else "mel_dur_pitch_text",
    ),
    read_published=_published_checkpoints.read_published,
    published_audio=AudioConfig(),
    exports=_export.exports,
    signatures=_export.signatures,
    from_exported=_export.ExportedFastPitch,
)
