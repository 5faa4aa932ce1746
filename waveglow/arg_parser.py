"""WaveGlow's options of inference on the command line."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from common.cli import positive_int, real_number
from common.errors import OptionError
from common.synthesis import VocoderSettings
from waveglow.config import SIGMA_INFER, ModelConfig


@dataclass(frozen=True)
class InferenceOptions:
    """WaveGlow's own options of inference."""

    wn_channels: int | None = None  # None: any
    sigma: float = SIGMA_INFER
    chunk_frames: int | None = None  # None: all at once


def add_inference_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of inference."""
    add = parser.add_argument_group("speaking with WaveGlow").add_argument
    width = "channels of its networks; a checkpoint of other widths is refused"
    add("--wn-channels", type=positive_int, help=width)
    noise = "standard deviation of the noise that becomes sound"
    add("--sigma-infer", type=real_number(0, 100), default=SIGMA_INFER, help=noise)
    chunk = "compute so many mel frames at a time, in memory that hardly grows with the length; the sound is the same"
    add("--chunk-frames", type=positive_int, help=chunk)


def parse_inference(args: argparse.Namespace) -> InferenceOptions:
    """The options of inference."""
    return InferenceOptions(wn_channels=args.wn_channels, sigma=args.sigma_infer, chunk_frames=args.chunk_frames)


def inference_settings(
    options: InferenceOptions | None, config: ModelConfig, *, seed: int, where: Path
) -> VocoderSettings:
    """Settings of ``WaveGlow.infer``; without ``options``, the defaults. ``config`` is that of the file ``where``.

    Raises:
        OptionError: the checkpoint is not as wide as --wn-channels.
    """
    options = options or InferenceOptions()
    if options.wn_channels not in (None, config.wn_channels):
        raise OptionError(
            f"--wn-channels {options.wn_channels}: {where} has {config.wn_channels}; leave the option out, or give "
            "another checkpoint"
        )
    settings = {"sigma": options.sigma, "seed": seed, "chunk_frames": options.chunk_frames}
    return VocoderSettings(infer=settings, silent={"sigma": 0.0}, positional=True)
