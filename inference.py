"""Speaks a list of phrases: text to mel-spectrograms to sound, with the latency and throughput of doing so."""

import argparse
import importlib
import itertools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

import models
from common.checkpoint import Checkpoint, load_checkpoint
from common.cli import ArgumentParser, run
from common.config import AudioConfig
from common.errors import CheckpointError, InputError, OptionError
from common.host_memory import keep_freed_memory
from common.inference_arguments import (
    add_inference_arguments,
    autocast_from_args,
    check_options,
    check_options_without_generator,
    checkpoint_option,
    device_from_args,
    pitch_options,
    text_config_from_args,
)
from common.logger import Logger
from common.measure import Measurements
from common.phrases import read_phrases
from common.pitch_statistics import read_pitch_statistics
from common.precision import choose_kernels, precision_name
from common.progress import progress
from common.registry import available_models
from common.signals import StopSignals
from common.synthesis import Controls, PitchTransformation
from common.synthesizer import (
    OutputFolder,
    Spoken,
    Synthesizer,
    Utterance,
    encode_phrases,
    load_given_mels,
    plan_batches,
)
from common.text.front_end import TextFrontEnd
from common.vocoder import Autocast, GriffinLimVocoder, NetworkVocoder, Vocoder, check_same_audio

GENERATORS = ("FastPitch", "Tacotron2")
VOCODERS = ("HiFi-GAN", "WaveGlow")
IN_HERTZ = {"shift", "custom"}  # pitch transforms that need to know the voice's pitch


@dataclass(frozen=True)
class Voice:
    """A text-to-mel checkpoint, ready to speak."""

    network: Any  # a common.synthesizer.Generator
    audio: AudioConfig
    front_end: TextFrontEnd
    n_speakers: int
    pitch_transform: PitchTransformation | None

    def speaker_id(self, name: str, where: str) -> int:
        """Id of a speaker's name or number; ``where`` says where it was written."""
        names = self.front_end.config.speakers
        if name in names:
            return names.index(name)
        if name.isdecimal() and int(name) < self.n_speakers:
            return int(name)
        or_names = f" or one of {', '.join(names)}" if names else ""
        raise InputError(f"{where}: speaker {name!r}, expected a number from 0 to {self.n_speakers - 1}{or_names}")


def parse_args(argv: list[str] | None) -> argparse.Namespace:
    """The options; a model's checkpoint can be given when its package is here."""
    here = available_models()
    parser = ArgumentParser(description="Speak a list of phrases", prog="inference.py")
    add_inference_arguments(
        parser,
        generators=[name for name in GENERATORS if name in here],
        vocoders=[name for name in VOCODERS if name in here],
    )
    args = parser.parse_args(argv)
    check_options(args)
    if given_checkpoint(args, GENERATORS) is None:
        check_options_without_generator(args, parser, has_vocoder=given_checkpoint(args, VOCODERS) is not None)
    return args


def given_checkpoint(args: argparse.Namespace, names: tuple[str, ...]) -> tuple[str, Path] | None:
    """The model among ``names`` whose checkpoint is given, and its path."""
    given = [(name, path) for name in names if (path := getattr(args, checkpoint_option(name), None)) is not None]
    if len(given) > 1:
        options = " and ".join("--" + checkpoint_option(name) for name, _ in given)
        raise OptionError(f"{options} do the same job; give one of them")
    return given[0] if given else None


def load_model(
    name: str, path: Path, args: argparse.Namespace, *, device: torch.device, ema: bool
) -> tuple[nn.Module, Any, Checkpoint]:
    """A checkpoint's first network, its ModelConfig, and the checkpoint with its text front end settled."""
    checkpoint = load_checkpoint(path)
    if checkpoint.model != name:
        raise CheckpointError(f"{path}: a checkpoint of {checkpoint.model}, expected one of {name}")
    if name in GENERATORS:
        checkpoint = replace(checkpoint, text=text_config_from_args(args, checkpoint.text, where=path))
    networks, config = models.load_networks(checkpoint, ema=ema, device=device, where=str(path))
    network = next(iter(networks.values()))
    network.prepare_for_inference()
    return network, config, checkpoint


def load_voice(given: tuple[str, Path], args: argparse.Namespace, *, device: torch.device) -> Voice:
    """A text-to-mel checkpoint with its text front end and the pitch transform of its package."""
    name, path = given
    network, config, checkpoint = load_model(name, path, args, device=device, ema=args.ema)
    package = models.get_package(name)
    if args.pitch_mean_std_file is not None:
        given_pitch = read_pitch_statistics(args.pitch_mean_std_file)
        network.pitch_mean.fill_(given_pitch.mean)
        network.pitch_std.fill_(given_pitch.std)
    transform = None
    if options := pitch_options(args):
        transform = importlib.import_module(f"{package.__name__}.pitch_transform").PitchTransform(**options)
        if options.keys() & IN_HERTZ and not network.pitch_std > 0:
            raise InputError(f"{path}: holds no pitch statistics to change pitch by in Hz; give --pitch-mean-std-file")
    return Voice(
        network=package.model.to_torchscript(network) if args.torchscript else network,
        audio=checkpoint.audio,
        front_end=TextFrontEnd(checkpoint.text, unknown_symbols=args.unknown_symbols),
        n_speakers=getattr(config, "n_speakers", 1),
        pitch_transform=transform,
    )


def load_vocoder(
    given: tuple[str, Path], args: argparse.Namespace, *, voice: Voice | None, device: torch.device, autocast: Autocast
) -> Vocoder:
    """A vocoder checkpoint, of the same mels as the voice."""
    name, path = given
    if args.no_audio:
        raise OptionError(f"--no-audio leaves no work for --{checkpoint_option(name)}; leave one of them out")
    network, _, checkpoint = load_model(name, path, args, device=device, ema=args.ema and voice is None)
    if voice is not None:
        check_same_audio(voice.audio, checkpoint.audio, names=("the text-to-mel checkpoint", str(path)))
    return NetworkVocoder(network, checkpoint.audio, name=checkpoint_option(name), autocast=autocast)


def prepare(
    args: argparse.Namespace, *, voice: Voice | None, vocoder: Vocoder | None
) -> tuple[list[Utterance], AudioConfig]:
    """The list's utterances, all checked, and the description of their mels."""
    phrases = read_phrases(args.input)
    if voice is None:
        return load_given_mels(phrases, dataset_path=args.dataset_path, audio=vocoder.audio if vocoder else None)
    if voice.pitch_transform is not None and phrases[0].pitch is not None:
        raise OptionError(f"--pitch-transform-* change the predicted pitch, but {args.input} gives the pitch")
    utterances = encode_phrases(
        phrases,
        voice.front_end,
        dataset_path=args.dataset_path,
        speaker_ids=voice.speaker_id,
        default_speaker=voice.speaker_id(args.speaker, "--speaker"),
    )
    voice.front_end.warn_dropped()
    return utterances, voice.audio


def speak_all(
    utterances: list[Utterance],
    synthesizer: Synthesizer,
    measurements: Measurements,
    *,
    args: argparse.Namespace,
    logger: Logger,
    folder: OutputFolder | None,
) -> None:
    """Speak every utterance ``--repeats`` times; the first time its files are written.

    Raises:
        SystemExit: a signal asked to stop; the phrase that was being spoken then is finished.
    """
    batches = plan_batches(utterances, args.batch_size)
    total = args.repeats * len(utterances)
    with StopSignals() as signals, progress(total=total, desc="speaking", unit="phrase") as bar:

        def stop_if_asked(_: Spoken) -> None:
            if signals.received is not None:
                raise SystemExit(128 + signals.received)

        def count(spoken: Spoken) -> None:
            bar.update()
            stop_if_asked(spoken)

        def write(spoken: Spoken) -> None:
            folder.write(spoken)
            count(spoken)

        for batch in itertools.islice(itertools.cycle(batches), args.warmup_steps):
            synthesizer.speak(batch, keep=stop_if_asked)
        for repeat in range(args.repeats):
            keep = write if repeat == 0 and folder is not None else count
            for batch in batches:
                times = synthesizer.speak(batch, keep=keep)
                measurements.add(times)
                if args.repeats == 1:
                    measurements.log_batch(times, logger)


def main(argv: list[str] | None = None) -> int:
    """Speak the list; every mistake in it or in the options shows before the first phrase is spoken."""
    args = parse_args(argv)
    device = device_from_args(args)
    autocast = autocast_from_args(args, device)
    choose_kernels(args)
    if not args.cuda:
        keep_freed_memory()
    given_voice, given_vocoder = given_checkpoint(args, GENERATORS), given_checkpoint(args, VOCODERS)
    voice = given_voice and load_voice(given_voice, args, device=device)
    vocoder = given_vocoder and load_vocoder(given_vocoder, args, voice=voice, device=device, autocast=autocast)
    utterances, audio = prepare(args, voice=voice, vocoder=vocoder)
    if vocoder is None and not args.no_audio:
        print("no vocoder checkpoint is given: the sound is made by Griffin-Lim, clear but rough")
        vocoder = GriffinLimVocoder(audio, seed=args.seed, n_iter=args.griffin_lim_iters)
    synthesizer = Synthesizer(
        generator=None if voice is None else voice.network,
        vocoder=vocoder,
        controls=Controls(
            pace=args.pace, max_duration=args.max_duration, pitch_transform=voice.pitch_transform if voice else None
        ),
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
    try:
        speak_all(utterances, synthesizer, measurements, args=args, logger=logger, folder=folder)
        measurements.log_summary(logger)
    finally:
        logger.close()
        if folder is not None:
            print(f"{folder.n_written} of {len(utterances)} phrases are in {args.output}")
    return 0


if __name__ == "__main__":
    run(main)
