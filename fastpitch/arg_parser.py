"""FastPitch's options of inference on the command line."""

import argparse
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeVar

from common.audio import PitchStatistics, read_pitch_statistics
from common.cli import real_number
from common.errors import InputError, OptionError
from common.synthesis import MAX_FRAMES, Controls
from common.text import LIMITS
from fastpitch.config import ModelConfig
from fastpitch.model import FastPitch
from fastpitch.prosody_transforms import EXAMPLES, EnergyTransform, PitchTransform, load_custom_transform

_AMPLIFICATIONS = (-10.0, 10.0)
_ENERGY_SHIFTS = (-100.0, 100.0)
Transform = TypeVar("Transform", PitchTransform, EnergyTransform)


def add_inference_arguments(parser: argparse.ArgumentParser) -> None:
    """Add pace, longest duration, and the changes of pitch and energy."""
    group = parser.add_argument_group("speaking with FastPitch")
    group.add_argument("--pace", type=real_number(*LIMITS["rate"]), default=1.0, help="2 speaks twice as fast")
    group.add_argument(
        "--max-duration", type=real_number(1, MAX_FRAMES), default=75.0, help="longest symbol, in frames at pace 1"
    )
    group.add_argument(
        "--pitch-mean-std-file", type=Path, help="pitch statistics (JSON, Hz) of a voice whose checkpoint has none"
    )
    energy_shift = "add to the energy, log(1 + norm of a log-mel frame): less is louder"
    for name, mean, unit, shift, shifts in (
        ("pitch", "its mean", "HZ", "raise or lower the pitch", LIMITS["pitch_shift"]),
        ("energy", "each phrase's mean", "NUMBER", energy_shift, _ENERGY_SHIFTS),
    ):
        option = f"--{name}-transform"
        group.add_argument(f"{option}-flatten", action="store_true", help=f"flatten the {name} to {mean}")
        group.add_argument(f"{option}-invert", action="store_true", help=f"mirror the {name} at {mean}")
        amplify = f"scale the {name}'s distance from {mean}"
        group.add_argument(f"{option}-amplify", type=real_number(*_AMPLIFICATIONS), metavar="FACTOR", help=amplify)
        group.add_argument(f"{option}-shift", type=real_number(*shifts), metavar=unit, help=shift)
        custom = (
            f"apply {name}_transform_custom of your Python FILE, which is run; without FILE that of {EXAMPLES.name}"
        )
        group.add_argument(f"{option}-custom", nargs="?", type=Path, const=EXAMPLES, metavar="FILE", help=custom)


@dataclass(frozen=True)
class InferenceOptions:
    """Options of inference."""

    controls: Controls
    pitch_statistics: PitchStatistics | None  # instead of the checkpoint's


def parse_inference(args: argparse.Namespace) -> InferenceOptions:
    """Options of inference.

    Raises:
        OptionError: a transform that is not finite, or a custom one with another.
        InputError: the file of pitch statistics, or that of a custom transform, cannot be read.
    """
    pitch, energy = _transform(args, PitchTransform), _transform(args, EnergyTransform)
    return InferenceOptions(
        Controls(pace=args.pace, max_duration=args.max_duration, pitch_transform=pitch, energy_transform=energy),
        pitch_statistics=args.pitch_mean_std_file and read_pitch_statistics(args.pitch_mean_std_file),
    )


def _transform(args: argparse.Namespace, kind: type[Transform]) -> Transform | None:
    """The transform of the ``--pitch-transform-*`` or ``--energy-transform-*`` options; None where none is given."""
    option = f"--{kind.quantity}-transform"
    values = {field.name: getattr(args, f"{kind.quantity}_transform_{field.name}") for field in fields(kind)}
    given = [name for name, value in values.items() if value is not None and value is not False]
    if not given:
        return None
    if values["custom"] is not None:
        if given != ["custom"]:
            raise OptionError(f"{option}-custom is applied alone; leave out {option}-{given[0]}, or do it in there")
        values["custom"] = load_custom_transform(values["custom"], kind.quantity)
    return kind(**values)


def controls(options: InferenceOptions, network: FastPitch, config: ModelConfig, *, where: Path) -> Controls:
    """How to speak with the checkpoint in ``where``; the ``network`` takes the pitch statistics that are given.

    Raises:
        InputError: a transform that the checkpoint has no statistics or no energy predictor for.
    """
    if options.pitch_statistics is not None:
        network.set_pitch_statistics(options.pitch_statistics)
    pitch, energy = options.controls.pitch_transform, options.controls.energy_transform
    if isinstance(pitch, PitchTransform) and pitch.needs_statistics and not (network.pitch_std > 0).all():
        raise InputError(f"{where}: holds no pitch statistics to change pitch by in Hz; give --pitch-mean-std-file")
    if energy is not None and not config.energy_conditioning:
        raise InputError(f"{where}: predicts no energy to transform; it was trained without --energy-conditioning")
    return options.controls
