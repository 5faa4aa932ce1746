"""FastPitch: parallel text-to-mel synthesis with explicit duration and pitch (arXiv:2006.06873)."""

from common.registry import GeneratorSpec, ModelSpec, TrainingSpec, deferred
from fastpitch import config, options

MODEL = ModelSpec(
    name="FastPitch",
    config=config.ModelConfig,
    build_networks=deferred("fastpitch.model.build_networks"),
    training=TrainingSpec(
        recipe=options.RECIPE,
        options=options.TrainingOptions,
        set_up=deferred("fastpitch.training_setup.set_up"),
        defaults=deferred("fastpitch.training_setup.defaults_of_voice"),
        model_config=deferred("fastpitch.training_setup.model_config"),
        build_dataset=deferred("fastpitch.data_function.build_dataset"),
        build_objective=deferred("fastpitch.loss_function.build_objective"),
        set_up_networks=deferred("fastpitch.fine_tuning.set_up_networks"),
        compute_statistics=deferred("fastpitch.data_function.compute_statistics"),
        sees_padding=lambda config: None if config.mask_convolutions else "mask_convolutions=False of the checkpoint",
        starts_from_checkpoint=True,
    ),
    inference=GeneratorSpec(
        options=options.InferenceOptions,
        controls=deferred("fastpitch.prosody_transforms.controls"),
        to_torchscript=deferred("fastpitch.model.to_torchscript"),
        n_speakers=lambda config: config.n_speakers,
        recordable=("encode", "add_pitch", "decode_frames"),
        phrase_columns=("pitch", "duration"),
        teacher_forced_dataset=deferred("fastpitch.data_function.teacher_forced_dataset"),
        has_aligner=lambda config: config.learned_alignment,
        list_columns=lambda config: "audio_text" if config.learned_alignment else "mel_dur_pitch_text",
    ),
    read_published=deferred("fastpitch.published_checkpoints.read_published"),
    exports=deferred("fastpitch.export.exports"),
    from_exported=deferred("fastpitch.export.ExportedFastPitch"),
)
