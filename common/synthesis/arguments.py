"""The options of voices on the command line: those that have a meaning for the models that speak."""

import argparse
from collections.abc import Collection, Mapping, Sequence

from common.cli import ArgumentParser
from common.options import add_options, read_options
from common.registry import GeneratorSpec, ModelSpec
from common.synthesis.options import VoiceOptions


def add_voice_options(parser: ArgumentParser, models: Sequence[ModelSpec], *, without: Collection[str] = ()) -> None:
    """Add `VoiceOptions` and the options of the ``models`` themselves; fields ``without`` are left out."""
    add_options(parser, VoiceOptions, without=without)
    for spec in models:
        add_options(parser.add_argument_group(f"speaking with {spec.name}"), spec.inference.options)


def read_voice_options(
    args: argparse.Namespace, models: Mapping[str, ModelSpec], *, batch_size: int = 64
) -> VoiceOptions:
    """The options of a voice of the ``models``, by role."""
    own = {role: read_options(args, spec.inference.options) for role, spec in models.items()}
    options: VoiceOptions = read_options(args, VoiceOptions, models=own, batch_size=batch_size)
    return options


def unsupported_options(models: Mapping[str, ModelSpec]) -> set[str]:
    """Fields of the options in `common.synthesis.options` that have no meaning for the ``models``, by role."""
    generator, vocoder = models.get("generator"), models.get("vocoder")
    without = set()
    if generator is None:
        without |= set("front_end text prosody subtitles timings save_prosody engine vocoder_pitch speaker".split())
    elif isinstance(generator.inference, GeneratorSpec) and generator.inference.n_speakers is None:
        without.add("speaker")
    if vocoder is None:
        without |= {"denoising_strength", "accept_audio_differences", "cuda_graphs", "vocoder_pitch"}
    else:
        without.add("griffin_lim_iters")
    if not models:
        without |= {"ema", "torchscript", "compile"}
    return without
