"""The harmonic vocoder's options of inference on the command line."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from common.cli import whole_number
from common.synthesis import VocoderSettings
from harmonic.config import MEL_CORRECTIONS, ModelConfig

_MOST_CORRECTIONS = 100


@dataclass(frozen=True)
class InferenceOptions:
    """The harmonic vocoder's own options of inference."""

    mel_corrections: int = MEL_CORRECTIONS


def add_inference_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of inference."""
    add = parser.add_argument_group("speaking with Harmonic").add_argument
    text = "rounds that bring the mel of the sound nearer to the one it is made of; many bring back Griffin-Lim's noise"
    add("--mel-corrections", type=whole_number(0, _MOST_CORRECTIONS), default=MEL_CORRECTIONS, help=text)


def parse_inference(args: argparse.Namespace) -> InferenceOptions:
    """The options of inference."""
    return InferenceOptions(mel_corrections=args.mel_corrections)


def inference_settings(
    options: InferenceOptions | None, config: ModelConfig, *, seed: int, where: Path
) -> VocoderSettings:
    """Settings of ``HarmonicVocoder.infer``; without ``options``, the defaults."""
    corrections = (options or InferenceOptions()).mel_corrections
    infer = {"corrections": corrections, "seed": seed}
    return VocoderSettings(infer=infer, positional=True, tracked=True, windows=corrections)
