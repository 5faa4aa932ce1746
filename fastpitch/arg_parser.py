"""FastPitch's training options on the command line."""

import argparse
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from common.audio.pitch import METHODS
from common.checkpoints.arguments import MelSource, stored_mels, training_audio_from_args
from common.cli import (
    ArgumentParser,
    add_fields,
    non_negative_float,
    non_negative_int,
    option_of,
    positive_int,
    real_number,
    values_of,
)
from common.config import AudioConfig, TextConfig
from common.data import FilelistEntry
from common.errors import OptionError
from common.text import TextFrontEnd
from common.text.arguments import (
    add_text_arguments,
    options_of_text,
    text_config_from_args,
    text_of_teacher,
    written_options,
)
from common.training import Optimization, Recipe, TrainingSetup, inverse_sqrt_schedule
from fastpitch.config import ModelConfig
from fastpitch.data_function import PITCH_CACHE
from fastpitch.fine_tuning import check_audio, read_voice
from fastpitch.options import InitialVoice, LossScales, TrainingOptions
from fastpitch.training_list import FOLDERS, lists_recordings, read_list, speaker_names

RECIPE = Recipe(
    epochs=1500,
    batch_size=32,
    optimizer="lamb",
    learning_rate=0.1,
    weight_decay=1e-6,
    grad_clip_thresh=1000.0,
    epochs_per_checkpoint=50,
)
_RECORDING_OPTIONS = {"pitch_method": "praat", "pitch_cache": None}  # and their defaults
_LOSSES = {  # field of LossScales -> help
    "pitch_predictor_loss_scale": "weight of the pitch loss",
    "energy_predictor_loss_scale": "weight of the energy loss",
    "attn_loss_scale": "weight of the alignment's loss",
    "kl_loss_weight": "final weight of the loss between soft and hard alignment",
    "kl_loss_start_epoch": "epoch after which that loss begins",
    "kl_loss_warmup_epochs": "epochs in which its weight rises",
}


def add_training_arguments(parser: ArgumentParser) -> None:
    """Add text, architecture, loss scales and pitch statistics; defaults are the published model's."""
    add_text_arguments(parser, features=True)
    group = parser.add_argument_group("FastPitch")
    group.add_argument("--warmup-steps", type=non_negative_int, default=1000, help="updates of rising rate; 0: none")
    architecture = {"symbols_embedding_dim": "channels of encoder and decoder"}
    for side, part in (("in", "encoder"), ("out", "decoder")):
        architecture |= {
            f"{side}_fft_n_layers": f"Transformer blocks of the {part}",
            f"{side}_fft_n_heads": f"attention heads of the {part}",
            f"{side}_fft_d_head": f"channels of an attention head of the {part}",
            f"{side}_fft_conv1d_kernel_size": f"kernel size of the {part}'s convolutions",
            f"{side}_fft_conv1d_filter_size": f"filters between the {part}'s convolutions",
            f"{side}_fft_output_size": f"output channels of the {part}; as --symbols-embedding-dim",
            f"p_{side}_fft_dropout": f"dropout in the {part}",
            f"p_{side}_fft_dropatt": f"dropout of the {part}'s attention",
            f"p_{side}_fft_dropemb": f"dropout of the {part}'s input",
        }
    for name, target in (("dur", "duration"), ("pitch", "pitch"), ("energy", "energy")):
        architecture |= {
            f"{name}_predictor_kernel_size": f"kernel size of the {target} predictor",
            f"{name}_predictor_filter_size": f"filters of the {target} predictor",
            f"p_{name}_predictor_dropout": f"dropout of the {target} predictor",
            f"{name}_predictor_n_layers": f"convolutions of the {target} predictor",
        }
    architecture |= {
        "pitch_embedding_kernel_size": "kernel size of the pitch embedding",
        "energy_embedding_kernel_size": "kernel size of the energy embedding",
        "speaker_emb_weight": "scale of the speaker embedding",
    }
    add_fields(group, ModelConfig(), architecture, whole=positive_int, real=real_number(-1e6, 1e6))
    group.add_argument(
        "--n-speakers",
        type=positive_int,
        help="number of speakers, with a column of their numbers or names in the lists; 1: one voice, whatever the "
        "lists say (default: as many as the training list's column has)",
    )
    group.add_argument(
        "--pitch-mean-std-file",
        type=Path,
        help="JSON with the pitch statistics to store in the model (Hz); with --learned-alignment they are measured "
        "if not given",
    )
    group.add_argument(
        "--from-checkpoint",
        type=Path,
        help="voice to start a new training from, ours or published: its architecture and text options are the "
        "defaults, symbols and speakers keep their vectors by name",
    )
    group.add_argument(
        "--mean-mel-bias",
        action="store_true",
        help="start the output layer's bias at the mean mel of the training list, not at random: fewer updates",
    )
    parser.set_defaults_reader("--from-checkpoint", _options_of_voice)
    _add_alignment_arguments(parser)
    _add_loss_arguments(parser)


def _add_alignment_arguments(parser: ArgumentParser) -> None:
    group = parser.add_argument_group(
        "FastPitch 1.1", "lists of wavs/a.wav[|pitch/a.pt]|text or mels/a.pt|pitch/a.pt|text"
    )
    switch = partial(group.add_argument, action=argparse.BooleanOptionalAction, default=False)
    switch("--learned-alignment", help="learn the durations, from recordings (or their features) and transcripts alone")
    switch("--energy-conditioning", help="predict the energy of each symbol, and speak with it")
    group.add_argument("--pitch-method", choices=METHODS, default="praat", help="estimates the pitch of recordings")
    cache = f"folder that keeps the pitch of recordings (default: {PITCH_CACHE} in the dataset's folder)"
    group.add_argument("--pitch-cache", "--pitch-online-dir", type=Path, help=cache)
    priors = "folder of the alignment's priors of extract_mels.py --save-alignment-priors (default: compute them)"
    group.add_argument("--alignment-priors", type=Path, help=priors)
    disk = "refuse lists that do not name the pitch, instead of estimating it"
    group.add_argument("--load-pitch-from-disk", action="store_true", help=disk)


def _add_loss_arguments(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("FastPitch's losses")
    names = ("--dur-predictor-loss-scale", "--duration-predictor-loss-scale")
    group.add_argument(*names, type=non_negative_float, default=0.1, help="weight of the duration loss")
    add_fields(group, LossScales(), _LOSSES, whole=non_negative_int, real=non_negative_float)


def _options_of_voice(path: Path) -> dict[str, Any]:
    """Architecture and text front end of a checkpoint as defaults of options, by destination."""
    voice = read_voice(path)
    of_data = ("n_mel_channels", "n_speakers")
    architecture = {name: value for name, value in vars(voice.config).items() if name not in of_data}
    return architecture | options_of_text(voice.text)


def parse_training(args: argparse.Namespace) -> TrainingSetup:
    """Options of training, with the published schedule: the learning rate is divided by sqrt(update) once the warm-up
    has reached sqrt(warmup steps); it is constant without warm-up.

    Raises:
        OptionError: options that do not go together.
        InputError: the training list or the voice to start from cannot be used.
    """
    _check_options(args)
    entries = read_list(args.dataset_path, args.training_files, learned_alignment=args.learned_alignment)
    if "pitch" in entries[0].fields and args.learned_alignment:
        _check_defaults(args, _RECORDING_OPTIONS, "is for lists of recordings alone; this list names their pitch")
    voice = None if args.from_checkpoint is None else read_voice(args.from_checkpoint)
    audio = _audio_config(args, entries, voice)
    known = () if voice is None else voice.speaker_names
    text = text_config_from_args(args, speakers=speaker_names(entries, args.n_speakers, known=known))
    notes = _note_of_recordings(args)
    given = values_of(args, TrainingOptions)
    if voice is None and "durations" in entries[0].fields:
        durations = (args.dataset_path / entries[0].fields["durations"]).parent
        if (taught := text_of_teacher(text, durations)) is not None:
            text, unknown_symbols = taught
            said = written_options(text)
            if unknown_symbols == "drop":
                said, given = f"{said} --unknown-symbols drop", given | {"unknown_symbols": "drop"}
            notes += (f"text is read as {durations} says, whose durations are of the symbols of {said}",)
    options = TrainingOptions(
        architecture=_model_config(args, audio, text),
        losses=LossScales(**values_of(args, LossScales)),
        initial_voice=voice,
        entries=entries,
        **given,
    )
    schedule = inverse_sqrt_schedule(args.learning_rate, warmup_steps=args.warmup_steps)
    return TrainingSetup(options, audio, text, Optimization(schedule), recordable=True, notes=notes)


def _note_of_recordings(args: argparse.Namespace) -> tuple[str, ...]:
    """Which lists of recordings are read as lists of their features, which training with durations needs."""
    lists = [str(path) for path in (*args.training_files, *args.validation_files) if lists_recordings(path)]
    if args.learned_alignment or not lists:
        return ()
    folders = ", ".join(FOLDERS.values())
    return (f"{', '.join(lists)}: what belongs to these recordings is read from {folders} in {args.dataset_path}",)


def _check_options(args: argparse.Namespace) -> None:
    if args.from_checkpoint is not None and args.mean_mel_bias:
        raise OptionError("--mean-mel-bias is for random weights, and --from-checkpoint gives others; leave one out")
    if not args.learned_alignment:
        of_alignment = {name: value for name, value in vars(LossScales()).items() if "predictor" not in name}
        reason = "is for training with --learned-alignment; add that"
        _check_defaults(args, _RECORDING_OPTIONS | of_alignment | {"alignment_priors": None}, reason)
    if args.alignment_priors is not None and 0 < args.p_arpabet < 1:
        raise OptionError("--alignment-priors are of fixed symbols, and --p-arpabet draws others; give 0 or 1")


def _check_defaults(args: argparse.Namespace, defaults: dict[str, Any], reason: str) -> None:
    """Refuse the first option that has another value than its default, as it would do nothing."""
    for name, default in defaults.items():
        if getattr(args, name) != default:
            raise OptionError(f"{option_of(name)} {reason}")


def _audio_config(args: argparse.Namespace, entries: list[FilelistEntry], voice: InitialVoice | None) -> AudioConfig:
    """What the stored mels are; for recordings, what the voice to start from makes, or else what the corpus's are."""
    source = None
    if "wav" not in entries[0].fields:
        source = stored_mels(args.dataset_path / "mels")
    elif voice is not None:
        checkpoint = voice.checkpoint
        source = MelSource(f"--from-checkpoint {voice.path}", checkpoint.audio, checkpoint.assumed)
    audio = training_audio_from_args(args, source)
    if voice is not None:
        check_audio(voice, audio)
    return audio


def _model_config(args: argparse.Namespace, audio: AudioConfig, text: TextConfig) -> ModelConfig:
    front_end = TextFrontEnd(text)
    n_speakers = args.n_speakers or max(1, len(text.speakers))
    derived = {
        "n_mel_channels": audio.n_mels,
        "symbol_type": text.input_type,
        "n_symbols": front_end.n_symbols,
        "padding_idx": front_end.padding_id,
        "n_speakers": n_speakers,
        "pitch_statistics_per_speaker": args.learned_alignment and n_speakers > 1,
    }
    return ModelConfig(**values_of(args, ModelConfig) | derived)


def model_config(
    options: TrainingOptions, audio: AudioConfig, text: TextConfig, *, base: ModelConfig | None = None
) -> ModelConfig:
    """The architecture that the options describe; ``base``, of the checkpoint to resume from, only says whether its
    speakers share their pitch statistics, as those of published voices do.
    """
    if base is None:
        return options.architecture
    return replace(options.architecture, pitch_statistics_per_speaker=base.pitch_statistics_per_speaker)
