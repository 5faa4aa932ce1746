"""FastPitch: parallel text-to-mel synthesis with explicit duration and pitch (arXiv:2006.06873)."""

from common.config import AudioConfig
from common.registry import GeneratorSpec, ModelSpec, TrainingSpec
from fastpitch import (
    config,
    data_function,
    export,
    fine_tuning,
    loss_function,
    model,
    options,
    prosody_transforms,
    published_checkpoints,
    training_setup,
)

MODEL = ModelSpec(
    name="FastPitch",
    config=config.ModelConfig,
    build_networks=model.build_networks,
    training=TrainingSpec(
        recipe=options.RECIPE,
        options=options.TrainingOptions,
        set_up=training_setup.set_up,
        defaults=training_setup.defaults_of_voice,
        model_config=training_setup.model_config,
        build_dataset=data_function.build_dataset,
        build_objective=loss_function.build_objective,
        set_up_networks=fine_tuning.set_up_networks,
        compute_statistics=data_function.compute_statistics,
        sees_padding=lambda config: None if config.mask_convolutions else "mask_convolutions=False of the checkpoint",
        starts_from_checkpoint=True,
    ),
    inference=GeneratorSpec(
        options=options.InferenceOptions,
        controls=prosody_transforms.controls,
        to_torchscript=model.to_torchscript,
        n_speakers=lambda config: config.n_speakers,
        phrase_columns=("pitch", "duration"),
        teacher_forced_dataset=data_function.teacher_forced_dataset,
        list_columns=lambda config: "audio_text" if config.learned_alignment else "mel_dur_pitch_text",
    ),
    read_published=published_checkpoints.read_published,
    published_audio=AudioConfig(),
    exports=export.exports,
    signatures=export.signatures,
    from_exported=export.ExportedFastPitch,
)
