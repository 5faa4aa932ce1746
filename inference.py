"""Speaks a text or a list of phrases; or, given a recognizer, transcribes recordings."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, redirect_stdout
from functools import partial
from pathlib import Path, PurePosixPath

from common.audio import check_sound_format
from common.checkpoints import LoadedCheckpoint, open_checkpoint
from common.cli import ArgumentParser, given_options, precision_from_args, run
from common.config import AudioConfig
from common.errors import InputError
from common.files import check_apart
from common.precision import Precision
from common.recognition.arguments import chosen_recognizer, recognize
from common.synthesis import (
    Controls,
    OutputFolder,
    Phrase,
    Speech,
    SynthesisInput,
    SynthesisResult,
    Synthesizer,
    Voice,
    check_ema,
    companions_of,
    contract_of,
    load_mels_or_recordings,
    read_phrases,
    speak_into_folder,
    with_frame_pitch,
    with_shipped,
    write_stream,
)
from common.synthesis.arguments import (
    STANDARD,
    add_inference_arguments,
    check_options,
    check_roles,
    chosen_model,
    griffin_lim_from_args,
    may_be_shipped,
    read_text,
    speaking_options,
    speaks_one_text,
    vocoder_from_args,
    voice_from_args,
    with_text_options,
)
from common.synthesis.command import output_of_text
from common.synthesis.effects import check_effects, warn_unread
from common.text import Style, utterance_draws
from models import available_models, get_model

LOG = "nvlog_infer.json"  # in a folder of --output


def build_parser() -> ArgumentParser:
    """The options of speaking; those of a recognizer are in `common.recognition.arguments`."""
    recognizers = ", ".join(f"--{get_model(name).option}" for name in available_models("recognizer"))
    parser = ArgumentParser(
        description="Speak a text, or a list of phrases",
        prog="inference.py",
        epilog="Exit status: 0 spoken, also where single phrases were cut that the voice did not end, or not spoken; 1 "
        "bad input, or that happened to every phrase; 2 wrong options; 128 + a signal's number if one stopped the run. "
        f"Speech to text has options of its own: {recognizers} CHECKPOINT --help.",
    )
    add_inference_arguments(parser)
    return parser


def open_checkpoints(
    args: argparse.Namespace, parser: ArgumentParser
) -> tuple[LoadedCheckpoint | None, LoadedCheckpoint | None]:
    """The generator's and the vocoder's checkpoint, where they are given, or the shipped ones to speak text with."""
    chosen = {role: chosen_model(args, role) for role in ("generator", "vocoder")}
    ema = True if args.quiet and args.ema is None else args.ema  # the same weights, without the line that says so
    opened = {
        role: open_checkpoint(given[1], model=given[0].name, ema=ema)
        for role, given in chosen.items()
        if given is not None
    }
    if args.ema and opened:
        check_ema(list(opened.values()))
    if opened or speaks_text(args):
        opened = with_shipped(opened, with_sound=may_be_shipped(args) and not args.no_audio)
    specs = {role: one.spec for role, one in opened.items()}
    check_roles(args, parser, generator=specs.get("generator"), vocoder=specs.get("vocoder"))
    generator = opened.get("generator")
    return generator and with_text_options(generator, args), opened.get("vocoder")


def speaks_text(args: argparse.Namespace) -> bool:
    """Whether a voice is needed: a list's column of mels or recordings needs none."""
    first = None if speaks_one_text(args) else read_phrases(args.input)[0]
    return first is None or (first.mel is None and first.wav is None)


def plan_list(args: argparse.Namespace, voice: Voice) -> list[SynthesisInput]:
    """The utterances of a list, all of it checked."""
    phrases = read_phrases(args.input)
    given = [column for column in ("pitch", "duration") if getattr(phrases[0], column) is not None]
    if unread := [column for column in given if column not in voice.phrase_columns]:
        raise InputError(
            f"{args.input}: {voice.spec.name} does not support the columns pitch and duration, and the list has "
            f"{' and '.join(unread)}; leave them out"
        )
    seed = None if args.p_arpabet is None else args.seed
    items = voice.encode(phrases, dataset_path=args.dataset_path, speaker=args.speaker, seed=seed)
    warn_unread(phrases, read=("text", "speaker", *voice.phrase_columns), source=str(args.input))
    return items


def plan_text(args: argparse.Namespace, voice: Voice, name: PurePosixPath) -> list[SynthesisInput]:
    """The utterances of the one text or prosody table that is given, whose sound has a ``name``."""
    text, where = read_text(args)
    phrase = Phrase(where, name, text if isinstance(text, str) else None)
    draw = None if args.p_arpabet is None else utterance_draws(seed=args.seed, epoch=0, index=0)
    items = voice.plan(text, style=Style(speaker=args.speaker), phrase=phrase, draw=draw)
    voice.front_end.warn_dropped()
    return items


def speak(args: argparse.Namespace, parser: ArgumentParser) -> int:
    """Load the models, check what is to be spoken, and speak it; returns the exit status."""
    precision = precision_from_args(args)
    precision.prepare_process()
    generator, vocoder = open_checkpoints(args, parser)
    if generator is None:
        contract = None if vocoder is None else contract_of(vocoder, None, accepted=args.accept_audio_differences)
        phrases = read_phrases(args.input)
        items, audio = load_mels_or_recordings(phrases, dataset_path=args.dataset_path, contract=contract)
        sound = None
        if vocoder is None and not args.no_audio:
            vocoder = with_shipped({}, audio=audio, with_sound=may_be_shipped(args)).get("vocoder")
        if vocoder is not None:
            sound = vocoder_from_args(args, vocoder, precision=precision)
        elif not args.no_audio:
            sound = griffin_lim_from_args(args, audio)
        takes_pitch = sound is not None and sound.takes_pitch
        if takes_pitch:
            items = with_frame_pitch(items, dataset_path=args.dataset_path)
        warn_unread(phrases, read=("mel", "wav", *["pitch"] * takes_pitch), source=str(args.input))
        synthesizer = Synthesizer(
            generator=None,
            vocoder=sound,
            controls=Controls(),
            audio=audio,
            device=precision.device,
            autocast=precision.autocast,
            fade_out=args.fade_out,
        )
        return speak_items(args, parser, items, synthesizer, partial(Speech, audio=audio), audio, precision)
    voice = voice_from_args(args, generator, vocoder, precision=precision, with_sound=not args.no_audio)
    if not speaks_one_text(args):
        items = plan_list(args, voice)
    else:
        items = plan_text(args, voice, output_of_text(args.output)[1])
    check_effects(
        given_options(args, parser),
        items,
        voice.controls,
        source=str(args.prosody or args.input),
        reads_text=args.prosody is None,
        keeps_pitch=args.plots or args.save_prosody,
    )
    if args.output == STANDARD:
        pieces = voice.pieces(items)
        write_stream(pieces, sys.__stdout__, sampling_rate=voice.sampling_rate, kind=args.stdout_format)
        return 0
    return speak_items(args, parser, items, voice.synthesizer, voice.join, voice.audio, precision)


def speak_items(
    args: argparse.Namespace,
    parser: ArgumentParser,
    items: list[SynthesisInput],
    synthesizer: Synthesizer,
    join: Callable[[Sequence[SynthesisResult]], Speech],
    audio: AudioConfig,
    precision: Precision,
) -> int:
    """Speak everything into files, where --output says so, and measure it; returns the exit status."""
    folder = output_of_text(args.output)[0] if speaks_one_text(args) else args.output
    if args.log_file is None and folder is not None and folder == args.output:
        args.log_file = folder / LOG
    output = None
    if folder is not None:
        companions = companions_of(
            plots=args.plots, subtitles=args.subtitles, timings=args.timings, prosody=args.save_prosody
        )
        kept = {"save_mels": args.save_mels, "companions": companions, "with_sound": not args.no_audio}
        output = OutputFolder(folder, audio=audio, join=join, **kept)
    check_files(args, parser, items, output)
    if output is not None:
        if not args.no_audio:
            for item in items:
                check_sound_format(item.phrase.output, sampling_rate=audio.sampling_rate, where=item.phrase.where)
        output.prepare()
    parameters = {name: value for name, value in vars(args).items() if not isinstance(value, dict)}
    return speak_into_folder(
        items,
        synthesizer,
        audio=audio,
        folder=output,
        options=speaking_options(args),
        log_file=args.log_file,
        parameters=parameters | {"precision": precision.name},
    )


def check_files(
    args: argparse.Namespace, parser: ArgumentParser, items: Sequence[SynthesisInput], output: OutputFolder | None
) -> None:
    """Refuse to write what is read, or two results into one file."""
    phrases = {item.phrase.output: item.phrase for item in items}.values()  # one may be of several items
    written, read = parser.files_of(args)
    written = [pair for pair in written if pair[1] != args.output]  # which is a folder, or that of the one phrase
    written += [] if output is None else output.files(phrases)
    check_apart(written, read + [(one.where, path) for one in phrases for path in one.files(args.dataset_path)])


def main(argv: Sequence[str] | None = None) -> int:
    """Speak the text or list; every mistake in it or in the options shows before the first phrase is synthesized."""
    if recognizer := chosen_recognizer(argv):
        return recognize(argv, recognizer)
    parser = build_parser()
    args = parser.parse_args(argv)
    check_options(args)
    with ExitStack() as stack:
        if args.output == STANDARD:
            stack.enter_context(redirect_stdout(sys.stderr))
        if args.quiet:
            stack.enter_context(redirect_stdout(stack.enter_context(Path(os.devnull).open("w"))))
        return speak(args, parser)


if __name__ == "__main__":
    run(main)
