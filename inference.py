"""Speaks a list of phrases, text to mel-spectrograms to sound, or with --jasper writes down what recordings say."""

import argparse
import importlib
from dataclasses import replace
from functools import partial
from typing import Any

import torch

import models
from common.audio.pitch_statistics import read_pitch_statistics
from common.checkpoints.loading import Given, open_checkpoint, open_checkpoints
from common.cli import ArgumentParser, run
from common.config import AudioConfig
from common.errors import InputError, OptionError
from common.logger import Logger
from common.precision import Autocast, precision_name
from common.recognition.arguments import parse_recognition_args, wants_recognition
from common.recognition.transcribe import write_down_all
from common.registry import GENERATORS, VOCODERS, available_models
from common.synthesis.arguments import (
    add_inference_arguments,
    check_options,
    check_roles,
    given_checkpoint,
    set_up,
    transform_options,
    vocoder_settings,
)
from common.synthesis.compile import CompiledNetwork
from common.synthesis.controls import Controls
from common.synthesis.copy_synthesis import load_given
from common.synthesis.cuda_graphs import CudaGraphRecorder
from common.synthesis.measurements import BatchTimes, Measurements
from common.synthesis.phrases import read_phrases
from common.synthesis.synthesizer import OutputFolder, Synthesizer, Utterance, plan_batches, speak_all
from common.synthesis.vocoder import AudioContract, GriffinLimVocoder, NetworkVocoder, Vocoder
from common.synthesis.voice import Voice, contract_of, vocoder_of, voice_of

IN_HERTZ = {"shift", "custom"}  # pitch transforms that need to know the voice's pitch


def parse_args(argv: list[str] | None) -> argparse.Namespace:
    """The options; a model's checkpoint can be given when its package is here."""
    here = available_models()
    parser = ArgumentParser(
        description="Speak a list of phrases",
        prog="inference.py",
        epilog="Exit status: 0 spoken, also where single phrases were cut that the voice did not end; 1 bad input, or "
        "every phrase was cut; 2 wrong options; 128 + a signal's number if one stopped the run. "
        "The other direction, speech to text, has options of its own: --jasper CHECKPOINT --help.",
    )
    add_inference_arguments(
        parser,
        generators=[name for name in GENERATORS if name in here],
        vocoders=[name for name in VOCODERS if name in here],
    )
    args = parser.parse_args(argv)
    check_options(args)
    generator, vocoder = given_checkpoint(args, GENERATORS), given_checkpoint(args, VOCODERS)
    check_roles(args, parser, generator=generator and generator[0], vocoder=vocoder and vocoder[0])
    return args


def compiled(network: Any, given: Given, args: argparse.Namespace) -> Any:
    """The network as ``--torchscript`` or ``--compile`` have it."""
    if args.torchscript:
        return models.get_package(given.model).model.to_torchscript(network)
    if args.compile and given.model == "Tacotron2":
        raise OptionError("--compile: Tacotron2's decoder, one frame after the other, cannot be compiled; leave it out")
    return CompiledNetwork(network, name=given.model) if args.compile else network


def load_voice(given: Given, args: argparse.Namespace, *, device: torch.device) -> Voice:
    """A text-to-mel checkpoint with its text front end and the transforms of its package."""
    network, config = models.load_for_inference(given, device=device)
    if args.pitch_mean_std_file is not None:
        given_pitch = read_pitch_statistics(args.pitch_mean_std_file)
        network.pitch_mean.fill_(given_pitch.mean)
        network.pitch_std.fill_(given_pitch.std)
    package = models.get_package(given.model).__name__
    transforms = {}
    for what in ("pitch", "energy"):
        if options := transform_options(args, what):
            module = importlib.import_module(f"{package}.{what}_transform")
            transforms[what] = getattr(module, f"{what.title()}Transform")(**options)
    if transform_options(args, "pitch").keys() & IN_HERTZ and not (network.pitch_std > 0).all():
        raise InputError(
            f"{given.path}: holds no pitch statistics to change pitch by in Hz; give --pitch-mean-std-file"
        )
    if "energy" in transforms and not config.energy_conditioning:
        raise InputError(f"{given.path}: knows no energy to transform; it was trained without --energy-conditioning")
    voice = voice_of(given, compiled(network, given, args), config, unknown_symbols=args.unknown_symbols)
    return replace(voice, pitch_transform=transforms.get("pitch"), energy_transform=transforms.get("energy"))


def load_vocoder(given: Given, args: argparse.Namespace, *, device: torch.device, autocast: Autocast) -> NetworkVocoder:
    """A vocoder checkpoint with its denoiser."""
    network, config = models.load_for_inference(given, device=device)
    return vocoder_of(
        given,
        network,
        settings=vocoder_settings(args, given.model, config, where=given.path),
        autocast=autocast,
        device=device,
        denoising_strength=args.denoising_strength,
        compiled=lambda network: compiled(network, given, args),
        graph_recorder=CudaGraphRecorder() if args.cuda_graphs else None,
    )


def load(
    args: argparse.Namespace, *, device: torch.device, autocast: Autocast
) -> tuple[Voice | None, Vocoder | None, AudioContract | None]:
    """The models that are given, and what mels the vocoder reads; that of the voice are compared with it first."""
    generator, vocoder = open_checkpoints(args)
    contract = vocoder and contract_of(vocoder, generator, accepted=args.accept_audio_differences)
    return (
        generator and load_voice(generator, args, device=device),
        vocoder and load_vocoder(vocoder, args, device=device, autocast=autocast),
        contract,
    )


def prepare(
    args: argparse.Namespace, *, voice: Voice | None, contract: AudioContract | None
) -> tuple[list[Utterance], AudioConfig]:
    """The list's utterances, all checked, and the description of their mels."""
    phrases = read_phrases(args.input)
    if voice is None:
        return load_given(phrases, dataset_path=args.dataset_path, contract=contract)
    if voice.model != "FastPitch" and (phrases[0].pitch is not None or phrases[0].duration is not None):
        raise InputError(
            f"{args.input}: its columns pitch and duration are for FastPitch, and {voice.model} knows nothing of them; "
            "leave them out"
        )
    if voice.pitch_transform is not None and phrases[0].pitch is not None:
        raise OptionError(f"--pitch-transform-* change the predicted pitch, but {args.input} gives the pitch")
    utterances = voice.encode(
        phrases,
        dataset_path=args.dataset_path,
        speaker=args.speaker,
        seed=None if args.p_arpabet is None else args.seed,
    )
    return utterances, voice.audio


def controls_from_args(args: argparse.Namespace, voice: Voice | None) -> Controls:
    """How every phrase is spoken."""
    return Controls(
        pace=args.pace,
        max_duration=args.max_duration,
        pitch_transform=voice.pitch_transform if voice else None,
        energy_transform=voice.energy_transform if voice else None,
        seed=args.seed,
        max_decoder_steps=args.max_decoder_steps,
        gate_threshold=args.gate_threshold,
    )


def recognise(argv: list[str] | None) -> int:
    """Write down what recordings say."""
    args = parse_recognition_args(argv)
    device, autocast = set_up(args)
    given = replace(open_checkpoint("Jasper", args.jasper, ema=False), ema=args.ema)
    network, config = models.load_for_inference(given, device=device)
    speech = models.get_package("Jasper").data_function.open_speech(args, config)
    transcribe = partial(network.transcribe, pad_leading=args.pad_leading)
    write_down_all(args, speech, transcribe, autocast=autocast, device=device)
    return 0


def main(argv: list[str] | None = None) -> int:
    """Speak the list; every mistake in it or in the options shows before the first phrase is spoken."""
    if wants_recognition(argv):
        return recognise(argv)
    args = parse_args(argv)
    device, autocast = set_up(args)
    voice, vocoder, contract = load(args, device=device, autocast=autocast)
    utterances, audio = prepare(args, voice=voice, contract=contract)
    if vocoder is None and not args.no_audio:
        print("no vocoder checkpoint is given: the sound is made by Griffin-Lim, clear but rough")
        vocoder = GriffinLimVocoder(audio, seed=args.seed, n_iter=args.griffin_lim_iters)
    synthesizer = Synthesizer(
        generator=None if voice is None else voice.network,
        vocoder=vocoder,
        controls=controls_from_args(args, voice),
        audio=audio,
        device=device,
        autocast=autocast,
    )
    measurements = Measurements(audio.sampling_rate, args.batch_size, vocoder.name if vocoder else "")
    folder = None
    if args.output is not None:
        folder = OutputFolder(args.output, audio=audio, fade_out_frames=args.fade_out, save_mels=args.save_mels)
    logger = Logger(args.log_file or (args.output and args.output / "nvlog_infer.json"))
    logger.parameter(**vars(args), precision=precision_name(args))

    def measured(times: BatchTimes) -> None:
        measurements.add(times)
        if args.repeats == 1:
            measurements.log_batch(times, logger)

    try:
        speak_all(
            plan_batches(utterances, args.batch_size),
            synthesizer,
            warmup_steps=args.warmup_steps,
            repeats=args.repeats,
            write=folder and folder.write,
            measured=measured,
        )
        measurements.log_summary(logger)
    finally:
        logger.close()
        if folder is not None:
            print(f"{folder.n_written} of {len(utterances)} phrases are in {args.output}")
    if not synthesizer.unfinished:
        return 0
    print(f"{len(synthesizer.unfinished)} of {len(utterances)} phrases were cut, as the voice did not end them")
    return 1 if len(synthesizer.unfinished) == len(utterances) else 0


if __name__ == "__main__":
    run(main)
