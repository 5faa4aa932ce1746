"""Speaks a list of phrases, text to mel-spectrograms to sound; or, given a recognizer, transcribes recordings."""

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack, redirect_stdout
from dataclasses import replace
from functools import partial
from pathlib import Path

from common.audio import check_sound_format
from common.checkpoints import LoadedCheckpoint, open_checkpoint
from common.cli import ArgumentParser, precision_from_args, run
from common.config import AudioConfig
from common.errors import InputError, OptionError
from common.logger import Logger
from common.precision import Precision
from common.progress import print_line
from common.recognition.arguments import chosen_recognizer, recognize
from common.synthesis import (
    MANY_BATCHES,
    AudioContract,
    BatchTimes,
    Controls,
    CudaGraphRecorder,
    GriffinLimVocoder,
    Measurements,
    OutputFolder,
    SynthesisInput,
    SynthesisResult,
    Synthesizer,
    Vocoder,
    Voice,
    accelerated,
    check_ema,
    contract_of,
    draw_result,
    load_mels_or_recordings,
    load_vocoder,
    load_voice,
    plan_batches,
    read_phrases,
    speak_all,
)
from common.synthesis.arguments import (
    add_inference_arguments,
    check_options,
    check_roles,
    chosen_model,
    parse_model_options,
    with_text_options,
)
from models import available_models, get_model


def build_parser() -> ArgumentParser:
    """The options of speaking; those of a recognizer are in `common.recognition.arguments`."""
    recognizers = ", ".join(f"--{get_model(name).option}" for name in available_models("recognizer"))
    parser = ArgumentParser(
        description="Speak a list of phrases",
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
    """The generator's and the vocoder's checkpoint, where they are given."""
    chosen = {role: chosen_model(args, role) for role in ("generator", "vocoder")}
    check_roles(args, parser, **{role: given and given[0] for role, given in chosen.items()})
    ema = True if args.quiet and args.ema is None else args.ema  # the same weights, without the line that says so
    opened = {
        role: open_checkpoint(given[1], model=given[0].name, ema=ema)
        for role, given in chosen.items()
        if given is not None
    }
    if args.ema:
        check_ema(list(opened.values()))
    generator = opened.get("generator")
    return generator and with_text_options(generator, args), opened.get("vocoder")


def load(
    args: argparse.Namespace, parser: ArgumentParser, precision: Precision
) -> tuple[Voice | None, Vocoder | None, AudioContract | None]:
    """The models that are given, and what mels the vocoder reads; the voice's are compared with it first."""
    generator, vocoder = open_checkpoints(args, parser)
    options = {one.spec.name: parse_model_options(args, one.spec) for one in (generator, vocoder) if one is not None}
    contract, voice, sound = None, None, None
    if vocoder is not None:
        contract = contract_of(vocoder, generator, accepted=args.accept_audio_differences)
    accelerate = partial(accelerated, torchscript=args.torchscript, compile=args.compile)
    if generator is not None:
        voice = load_voice(
            generator,
            options[generator.spec.name],
            precision=precision,
            unknown_symbols=args.unknown_symbols,
            accelerate=accelerate,
        )
    if vocoder is not None:
        sound = load_vocoder(
            vocoder,
            options[vocoder.spec.name],
            precision=precision,
            seed=args.seed,
            denoising_strength=args.denoising_strength,
            accelerate=accelerate,
            graph_recorder=CudaGraphRecorder() if args.cuda_graphs else None,
        )
    return voice, sound, contract


def prepare(
    args: argparse.Namespace, *, voice: Voice | None, contract: AudioContract | None
) -> tuple[list[SynthesisInput], AudioConfig]:
    """What the list asks for, all of it checked, and the description of its mels."""
    phrases = read_phrases(args.input)
    if voice is None:
        return load_mels_or_recordings(phrases, dataset_path=args.dataset_path, contract=contract)
    given = [column for column in ("pitch", "duration") if getattr(phrases[0], column) is not None]
    if unread := [column for column in given if column not in voice.phrase_columns]:
        raise InputError(
            f"{args.input}: {voice.spec.name} does not support the columns pitch and duration, and the list has "
            f"{' and '.join(unread)}; leave them out"
        )
    if voice.controls.pitch_transform is not None and "pitch" in given:
        raise OptionError(f"--pitch-transform-* change the predicted pitch, but {args.input} gives the pitch")
    seed = None if args.p_arpabet is None else args.seed
    items = voice.encode(phrases, dataset_path=args.dataset_path, speaker=args.speaker, seed=seed)
    return items, voice.audio


def speak(
    args: argparse.Namespace,
    items: list[SynthesisInput],
    synthesizer: Synthesizer,
    audio: AudioConfig,
    symbols: Sequence[str],
    precision: Precision,
) -> None:
    """Speak everything into the output folder, with a line for each file, a summary, and a log of the figures.

    ``symbols`` are the voice's; ``precision`` is that of the networks.
    """
    measurements = Measurements(audio.sampling_rate, args.batch_size, synthesizer.vocoder_name)
    folder = None
    draw = partial(draw_result, audio=audio, symbols=symbols) if args.plots else None
    if args.output is not None:
        folder = OutputFolder(
            args.output, audio=audio, fade_out_frames=args.fade_out, save_mels=args.save_mels, draw=draw
        )
    logger = Logger(args.log_file or (args.output and args.output / "nvlog_infer.json"), stdout=False)
    parameters = {name: value for name, value in vars(args).items() if not isinstance(value, dict)}
    logger.parameter(**parameters, precision=precision.name)

    def on_result(result: SynthesisResult) -> None:
        if folder is not None:
            print_line(folder.write(result))

    def on_batch(times: BatchTimes) -> None:
        measurements.add(times)
        if args.repeats == 1:
            measurements.log_batch(times, logger)

    # In a log file the lines of the files show the progress.
    is_shown = folder is None or args.repeats > 1 or sys.stderr.isatty()
    try:
        speak_all(
            plan_batches(items, args.batch_size),
            synthesizer,
            warmup_steps=args.warmup_steps,
            repeats=args.repeats,
            show_progress=is_shown and not args.quiet,
            on_result=on_result,
            on_batch=on_batch,
        )
        logger.stdout = args.benchmark or len(measurements.batches) > MANY_BATCHES
        measurements.log_summary(logger)
    finally:
        logger.close()
        written = "" if folder is None else f"{folder.n_written} of {len(items)} phrases are in {args.output}"
        if figures := list(filter(None, [written, measurements.total()])):
            print("; ".join(figures))
        for problem in synthesizer.problems(len(items)):
            print(problem)


def main(argv: Sequence[str] | None = None) -> int:
    """Speak the list; every mistake in it or in the options shows before the first phrase is synthesized."""
    if recognizer := chosen_recognizer(argv):
        return recognize(argv, recognizer)
    parser = build_parser()
    args = parser.parse_args(argv)
    check_options(args)
    with ExitStack() as stack:
        if args.quiet:
            stack.enter_context(redirect_stdout(stack.enter_context(Path(os.devnull).open("w"))))
        return speak_list(args, parser)


def speak_list(args: argparse.Namespace, parser: ArgumentParser) -> int:
    """Load the models, check the list and speak it; returns the exit status."""
    precision = precision_from_args(args)
    precision.prepare_process()
    voice, vocoder, contract = load(args, parser, precision)
    items, audio = prepare(args, voice=voice, contract=contract)
    if args.output is not None and not args.no_audio:
        for item in items:
            check_sound_format(item.phrase.output, sampling_rate=audio.sampling_rate, where=item.phrase.where)
    if vocoder is None and not args.no_audio:
        print("no vocoder checkpoint is given: the sound is made by Griffin-Lim, clear but rough")
        vocoder = GriffinLimVocoder(audio, seed=args.seed, n_iter=args.griffin_lim_iters)
    synthesizer = Synthesizer(
        generator=None if voice is None else voice.network,
        vocoder=vocoder,
        controls=replace(voice.controls if voice else Controls(), seed=args.seed),
        audio=audio,
        device=precision.device,
        autocast=precision.autocast,
    )
    speak(args, items, synthesizer, audio, voice.front_end.symbols if voice else [], precision)
    return 1 if len(synthesizer.unfinished | synthesizer.silent) == len(items) else 0


if __name__ == "__main__":
    run(main)
