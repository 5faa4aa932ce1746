"""FastPitch: parallel text-to-mel synthesis with explicit duration and pitch (arXiv:2006.06873)."""

from common.config import AudioConfig
from common.registry import GeneratorSpec, ModelSpec, TrainingSpec
from fastpitch import (
    arg_parser,
    config,
    data_function,
    export,
    fine_tuning,
    inference_options,
    loss_function,
    model,
    prosody_transforms,
    published_checkpoints,
)

MODEL = ModelSpec(
    name="FastPitch",
    config=config.ModelConfig,
    build_networks=model.build_networks,
    training=TrainingSpec(
        recipe=arg_parser.RECIPE,
        add_arguments=arg_parser.add_training_arguments,
        parse=arg_parser.parse_training,
        model_config=arg_parser.model_config,
        build_dataset=data_function.build_dataset,
        build_objective=loss_function.build_objective,
        set_up_networks=fine_tuning.set_up_networks,
        compute_statistics=data_function.compute_statistics,
        sees_padding=lambda config: None if config.mask_convolutions else "mask_convolutions=False of the checkpoint",
        starts_from_checkpoint=True,
    ),
    inference=GeneratorSpec(
        options=inference_options.InferenceOptions,
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
