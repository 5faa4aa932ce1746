"""The options of voices on the command line: those that have a meaning for the models that speak."""

import argparse
from collections.abc import Collection, Mapping, Sequence

from common.cli import ArgumentParser
from common.options import add_options, read_options
from common.precision import ComputingOptions, Precision
from common.registry import GeneratorSpec, ModelSpec, VocoderSpec
from common.synthesis.options import VoiceOptions


def add_voice_options(parser: ArgumentParser, models: Sequence[ModelSpec], *, without: Collection[str] = ()) -> None:
    """Add `VoiceOptions` and the options of the ``models`` themselves; fields ``without`` are left out."""
    add_options(parser, VoiceOptions, without=without)
    for spec in models:
        add_options(parser.add_argument_group(f"speaking with {spec.name}"), spec.inference.options)


def read_voice_options(args: argparse.Namespace, models: Mapping[str, ModelSpec]) -> tuple[VoiceOptions, Precision]:
    """The options of a voice of the ``models``, by role, and what it computes in, for which the process is prepared."""
    own = {role: read_options(args, spec.inference.options) for role, spec in models.items()}
    options: VoiceOptions = read_options(args, VoiceOptions, models=own, batch_size=getattr(args, "batch_size", 1))
    precision = read_options(args, ComputingOptions).precision()
    precision.prepare_process()
    return options, precision


def unsupported_options(models: Mapping[str, ModelSpec]) -> set[str]:
    """Fields of the options in `common.synthesis.options` that have no meaning for the ``models``, by role."""
    generators = [one.inference for one in models.values() if isinstance(one.inference, GeneratorSpec)]
    vocoders = [one.inference for one in models.values() if isinstance(one.inference, VocoderSpec)]
    every: list[GeneratorSpec | VocoderSpec] = [*generators, *vocoders]
    found: dict[str, object] = {"ema": models}
    found |= dict.fromkeys("front_end text prosody subtitles timings save_prosody engine".split(), generators)
    found |= dict.fromkeys(("accept_audio_differences", "cuda_graphs"), vocoders)
    found["griffin_lim_iters"] = not vocoders
    found["speaker"] = any(one.n_speakers for one in generators)
    found["denoising_strength"] = any(one.has_noise for one in vocoders)
    tells_pitch = any("pitch" in one.phrase_columns for one in generators)
    found["vocoder_pitch"] = tells_pitch and any(one.takes_pitch for one in vocoders)
    found["torchscript"] = any(one.to_torchscript for one in every)
    found["compile"] = any(one.not_compilable is None for one in every)
    return {name for name, is_supported in found.items() if not is_supported}
