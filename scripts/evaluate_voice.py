"""Listens to a voice: speaks a list, and says of each utterance how well it is understood, how far it is from a
recording of the same words, and how fast it was made.

    python -m scripts.evaluate_voice FastPitch.pt HiFi-GAN.pt phrases/devset10.tsv --jasper Jasper.pt

GENERATOR is a checkpoint that makes mel-spectrograms of text, VOCODER one that makes sound of these or the word
griffin-lim. A run that was stopped goes on where it was when it is started again.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import models
from common.checkpoints.checkpoint import load_checkpoint
from common.checkpoints.loading import Given
from common.cli import ArgumentParser, non_negative_float, positive_float, positive_int, run
from common.config import AudioConfig
from common.errors import CheckpointError, OptionError
from common.evaluation.evaluator import Evaluator, Folder, Item, evaluate_all
from common.evaluation.page import save_page
from common.evaluation.results import Journal, Result, Table, columns_of, save_results
from common.files import sha256
from common.precision import Autocast, add_precision_arguments, check_precision_arguments, precision_name
from common.progress import print_line
from common.recognition.transcribe import Listener
from common.registry import GENERATORS, VOCODERS
from common.synthesis.arguments import SIGMA_INFER, add_text_arguments, set_up, text_config_from_args
from common.synthesis.controls import Controls
from common.synthesis.synthesizer import Synthesizer
from common.synthesis.vocoder import ACCEPTABLE_DIFFERENCES, GriffinLimVocoder, Vocoder
from common.synthesis.voice import Voice, contract_of, vocoder_of, voice_of
from jasper.text import normalize_transcript
from jasper.waveform import resample, voiced_part
from scripts.evaluation_list import READERS, read_items

GRIFFIN_LIM = "griffin-lim"
OPTIONS_OF = {  # options that one kind of model alone has a notion of
    "FastPitch": ("speaker", "pace"),
    GRIFFIN_LIM: ("griffin_lim_iters",),
    "WaveGlow": ("sigma_infer",),
}
# What the results do not depend on, or by more than the option's words.
NOT_SETTINGS = set("generator vocoder jasper list output fresh recordings transcripts dataset_path".split())
NETWORK_OPTIONS = ("denoising_strength", "accept_audio_differences")  # of vocoders that are networks


def build_parser() -> ArgumentParser:
    """The options."""
    parser = ArgumentParser(
        prog="evaluate_voice.sh",
        description="Speak a list, and measure what is heard, how far it is from recordings, and how fast it is made",
        epilog="Exit status: 0 all evaluated; 1 bad input, or some utterances could not be evaluated (the report says "
        "which); 2 wrong options; 128 + a signal's number if one stopped the run.",
    )
    parser.add_argument("generator", type=Path, help=f"checkpoint that makes mels of text: {' or '.join(GENERATORS)}")
    parser.add_argument(
        "vocoder", help=f"{GRIFFIN_LIM}, or a checkpoint that makes sound of mels: {' or '.join(VOCODERS)}"
    )
    parser.add_argument(
        "list", type=Path, help="phrases, as inference.py reads them; a column wav names a recording of each"
    )
    parser.add_argument("-o", "--output", type=Path, default=Path("output/evaluation"), help="folder for everything")
    parser.add_argument("--fresh", action="store_true", help="begin anew instead of going on from an earlier run")
    parser.add_argument("--seed", type=int, default=1234, help="of everything random, the same for every phrase")
    _add_measuring_arguments(parser.add_argument_group("what it is measured by"))
    _add_speaking_arguments(parser.add_argument_group("speaking"))
    add_text_arguments(parser)
    add_precision_arguments(parser.add_argument_group("computing"))
    return parser


def _add_measuring_arguments(group: argparse._ActionsContainer) -> None:
    group.add_argument("--jasper", type=Path, help="checkpoint that writes down what it hears, for WER and CER")
    group.add_argument(
        "--dataset-path",
        type=Path,
        default=Path(),
        help="folder that the columns wav, pitch and duration start from, and that recordings are looked for in where "
        "--recordings is not given",
    )
    group.add_argument(
        "--recordings", type=Path, help="folder with recordings under the utterances' names; some may be missing"
    )
    group.add_argument(
        "--transcripts", type=Path, help="list with the words of each utterance, where the list to speak is of phones"
    )


def _add_speaking_arguments(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--reader",
        choices=READERS,
        default="auto",
        help="who turns words into phones for a voice of IPA phones: eSpeak, as for the quickstart's; none speaks the "
        "list as it is; auto: eSpeak unless the list holds phones",
    )
    group.add_argument("--ema", action="store_true", help="use the averaged weights of each checkpoint that has them")
    group.add_argument("--speaker", default="0", help="number or name of the voice, where the list has no such column")
    group.add_argument("--pace", type=positive_float, default=1.0, help="2 speaks twice as fast")
    group.add_argument("--griffin-lim-iters", type=positive_int, default=60, help="rounds of Griffin-Lim")
    group.add_argument(
        "--denoising-strength",
        type=non_negative_float,
        default=0.0,
        help="how much of a vocoder's own noise is subtracted; 0.005 is a little",
    )
    group.add_argument(
        "--sigma-infer",
        type=non_negative_float,
        default=SIGMA_INFER,
        help="standard deviation of the noise that WaveGlow makes sound of",
    )
    group.add_argument(
        "--accept-audio-differences",
        nargs="+",
        choices=ACCEPTABLE_DIFFERENCES,
        default=[],
        help="speak mels that differ in these from what the vocoder was trained on",
    )


@dataclass(frozen=True)
class Models:
    """The checkpoints of an evaluation."""

    generator: Given
    vocoder: Given | None  # None: Griffin-Lim
    ear: Given | None


@dataclass(frozen=True)
class JasperEar:
    """A Jasper that writes down waves of any sampling rate."""

    listener: Listener
    labels: tuple[str, ...]
    sampling_rate: int  # Hz, of what it hears

    def hear(self, wave: Tensor, sampling_rate: int) -> str:
        """wave (T,) of ``sampling_rate`` Hz -> the words in it."""
        wave = resample(wave, ratio=self.sampling_rate / sampling_rate)
        start, end = voiced_part(wave)
        texts, _ = self.listener.hear(wave[None, start:end], torch.tensor([end - start]))
        return texts[0]

    def normalise(self, text: str) -> str:
        """A text as the network would write it down."""
        return normalize_transcript(text, self.labels)


def parse_args(argv: Sequence[str] | None) -> tuple[argparse.Namespace, ArgumentParser]:
    """The options, and the parser that knows their defaults."""
    parser = build_parser()
    args = parser.parse_args(argv)
    check_precision_arguments(args)
    return args, parser


def open_models(args: argparse.Namespace, parser: ArgumentParser) -> Models:
    """The checkpoints, which must fit each other and the options.

    Raises:
        CheckpointError: one cannot be read, or is of a model that does another job.
        InputError: generator and vocoder are of different mel-spectrograms.
        OptionError: an option is about another model.
    """
    generator = _open(args.generator, GENERATORS, ema=args.ema)
    text = text_config_from_args(args, generator.checkpoint.text, where=generator.path)
    generator = replace(generator, checkpoint=replace(generator.checkpoint, text=text))
    vocoder = None if args.vocoder == GRIFFIN_LIM else _open(Path(args.vocoder), VOCODERS, ema=args.ema)
    ear = None if args.jasper is None else _open(args.jasper, ("Jasper",), ema=args.ema)
    given = [one for one in (generator, vocoder, ear) if one is not None]
    if args.ema and not any(one.ema for one in given):
        raise CheckpointError(f"{' and '.join(str(one.path) for one in given)}: no averaged weights; leave out --ema")
    _check_options(args, parser, here={generator.model, GRIFFIN_LIM if vocoder is None else vocoder.model})
    if vocoder is not None:
        contract_of(vocoder, generator, accepted=args.accept_audio_differences)
    return Models(generator, vocoder, ear)


def _open(path: Path, expected: Sequence[str], *, ema: bool) -> Given:
    checkpoint = load_checkpoint(path, training=False)
    if checkpoint.model not in expected:
        raise CheckpointError(f"{path}: a checkpoint of {checkpoint.model}, expected one of {' or '.join(expected)}")
    return Given(checkpoint.model, path, checkpoint, ema=ema and checkpoint.ema is not None)


def _check_options(args: argparse.Namespace, parser: ArgumentParser, *, here: set[str]) -> None:
    def given(names: Sequence[str]) -> list[str]:
        return [f"--{name.replace('_', '-')}" for name in names if getattr(args, name) != parser.get_default(name)]

    for model, names in OPTIONS_OF.items():
        for option in given(names) if model not in here else ():
            raise OptionError(f"{option} is for {model}, which is not what speaks here; leave it out")
    for option in given(NETWORK_OPTIONS) if GRIFFIN_LIM in here else ():
        raise OptionError(f"{option} is for a vocoder's network; give the checkpoint of one instead of {GRIFFIN_LIM}")


def load_voice(opened: Models, args: argparse.Namespace, *, device: torch.device) -> Voice:
    """The voice on its device."""
    network, config = models.load_for_inference(opened.generator, device=device)
    return voice_of(opened.generator, network, config, unknown_symbols=args.unknown_symbols)


def load_vocoder(
    opened: Models, args: argparse.Namespace, *, audio: AudioConfig, device: torch.device, autocast: Autocast
) -> Vocoder:
    """The vocoder on its device."""
    given = opened.vocoder
    if given is None:
        return GriffinLimVocoder(audio, seed=args.seed, n_iter=args.griffin_lim_iters)
    network, _ = models.load_for_inference(given, device=device)
    return vocoder_of(
        given,
        network,
        settings={"sigma": args.sigma_infer, "seed": args.seed} if given.model == "WaveGlow" else {},
        autocast=autocast,
        device=device,
        denoising_strength=args.denoising_strength,
    )


def load_ear(given: Given | None, *, device: torch.device, autocast: Autocast) -> JasperEar | None:
    """The recogniser on its device, if there is one."""
    if given is None:
        return None
    network, config = models.load_for_inference(given, device=device)
    return JasperEar(Listener(network.transcribe, autocast, 1, device), config.labels, config.features.sample_rate)


def settings_of(args: argparse.Namespace, opened: Models) -> dict[str, Any]:
    """All that the results depend on besides the list, in plain types."""
    given = {"generator": opened.generator, "vocoder": opened.vocoder, "jasper": opened.ear}
    options = {name: value for name, value in vars(args).items() if name not in NOT_SETTINGS}
    return {
        "sha256": {name: sha256(one.path) for name, one in given.items() if one is not None},
        "options": {name: str(value) if isinstance(value, Path) else value for name, value in options.items()},
    }


def new_table(items: Sequence[Item], *, heard: bool) -> Table:
    """A table of what can be measured of ``items``."""
    words = heard and any(item.words is not None for item in items)
    return Table(columns_of(words=words, recordings=any(item.recording is not None for item in items)))


def report(folder: Folder, results: Sequence[Result], *, args: argparse.Namespace, settings: dict[str, Any]) -> None:
    """Write the JSON and the page, and say where they are."""
    said = {"generator": args.generator, "vocoder": args.vocoder, "list": args.list, "jasper": args.jasper}
    facts = {name: str(value) for name, value in said.items() if value is not None}
    facts["precision"] = precision_name(args)
    save_results(folder.results, results, settings=facts | settings)
    save_page(folder, results, title=f"{args.generator.name} through {Path(args.vocoder).name}", settings=facts)
    print_line(f"listen and look: {folder.page}; figures: {folder.results}")
    if failed := sum(result.error is not None for result in results):
        print_line(f"{failed} of {len(results)} utterances could not be evaluated to the end")


def main(argv: Sequence[str] | None = None) -> int:
    """Evaluate; every mistake in the options, the list and the checkpoints shows before the first phrase is spoken."""
    args, parser = parse_args(argv)
    opened = open_models(args, parser)
    device, autocast = set_up(args)
    voice = load_voice(opened, args, device=device)
    items = read_items(args, voice)
    vocoder = load_vocoder(opened, args, audio=voice.audio, device=device, autocast=autocast)
    ear = load_ear(opened.ear, device=device, autocast=autocast)
    synthesizer = Synthesizer(
        generator=voice.network,
        vocoder=vocoder,
        controls=Controls(pace=args.pace, seed=args.seed),
        audio=voice.audio,
        device=device,
        autocast=autocast,
    )
    folder = Folder(args.output)
    evaluator = Evaluator(synthesizer, voice.audio, folder, ear=ear)
    settings = settings_of(args, opened)
    journal = Journal(folder.journal, settings=settings)
    earlier = [] if args.fresh else folder.finished(journal.read(), items)
    journal.start(earlier)
    if earlier:
        print(f"{len(earlier)} of {len(items)} utterances are from an earlier run; --fresh measures them anew")
    table = new_table(items, heard=ear is not None)
    for line in (table.header, *map(table.row, earlier)):
        print_line(line)

    def done(result: Result) -> None:
        journal.add(result)
        print_line(table.row(result))

    results, signal = evaluate_all(items, evaluator, earlier=earlier, done=done)
    print_line(table.means(results))
    report(folder, results, args=args, settings=settings)
    if signal is not None:
        print_line(f"stopped after {len(results)} of {len(items)} utterances; start it again to go on")
        return 128 + signal
    return 1 if any(result.error is not None for result in results) else 0


if __name__ == "__main__":
    run(main)
