"""FastPitch: parallel text-to-mel synthesis with explicit duration and pitch (arXiv:2006.06873)."""

from common.config import AudioConfig
from common.registry import GeneratorSpec, ModelSpec, TrainingSpec, deferred
from common.synthesis import Controls
from fastpitch import arg_parser, config, options

_model, _setup, _export = (deferred(f"fastpitch.{name}") for name in ("model", "training_setup", "export"))
_data = deferred("fastpitch.data_function")

MODEL = ModelSpec(
    name="FastPitch",
    config=config.ModelConfig,
    build_networks=_model.build_networks,
    training=TrainingSpec(
        recipe=options.RECIPE,
        options=options.TrainingOptions,
        set_up=_setup.set_up,
        defaults=_setup.defaults_of_voice,
        model_config=_setup.model_config,
        build_dataset=_data.build_dataset,
        build_objective=deferred("fastpitch.loss_function").build_objective,
        set_up_networks=deferred("fastpitch.fine_tuning").set_up_networks,
        compute_statistics=_data.compute_statistics,
        sees_padding=lambda config: None if config.mask_convolutions else "mask_convolutions=False of the checkpoint",
        starts_from_checkpoint=True,
    ),
    inference=GeneratorSpec(
        add_arguments=arg_parser.add_inference_arguments,
        parse=arg_parser.parse_inference,
        default_options=arg_parser.InferenceOptions(Controls(), pitch_statistics=None),
        controls=arg_parser.controls,
        to_torchscript=_model.to_torchscript,
        n_speakers=lambda config: config.n_speakers,
        phrase_columns=("pitch", "duration"),
        teacher_forced_dataset=_data.teacher_forced_dataset,
        list_columns=lambda config: "audio_text" if config.learned_alignment else "mel_dur_pitch_text",
    ),
    read_published=deferred("fastpitch.published_checkpoints").read_published,
    published_audio=AudioConfig(),
    exports=_export.exports,
    signatures=_export.signatures,
    from_exported=_export.ExportedFastPitch,
)
