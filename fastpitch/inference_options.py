"""Options of speaking with FastPitch."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.errors import OptionError
from common.options import option
from common.synthesis.options import MAX_FRAMES
from common.text.prosody import LIMITS

EXAMPLES = Path(__file__).with_name("custom_transforms.py")  # what a custom transform is without a file of its own
_CUSTOM = "apply {0}_transform_custom of your Python FILE, which is run; without FILE that of " + EXAMPLES.name


@dataclass(frozen=True)
class InferenceOptions:
    """How FastPitch speaks.

    Raises:
        OptionError: a custom transform is given with another of the same quantity.
    """

    pace: float = option(1.0, "2 speaks twice as fast", least=LIMITS["rate"][0], most=LIMITS["rate"][1])
    max_duration: float = option(75.0, "longest symbol, in frames at pace 1", least=1, most=MAX_FRAMES)
    pitch_mean_std_file: Path | None = option(None, "pitch statistics (JSON, Hz) of a voice whose checkpoint has none")
    pitch_transform_flatten: bool = option(False, "flatten the pitch to its mean")
    pitch_transform_invert: bool = option(False, "mirror the pitch at its mean")
    pitch_transform_amplify: float | None = option(
        None, "scale the pitch's distance from its mean", least=-10, most=10, metavar="FACTOR"
    )
    pitch_transform_shift: float | None = option(
        None, "raise or lower the pitch", least=LIMITS["pitch_shift"][0], most=LIMITS["pitch_shift"][1], metavar="HZ"
    )
    pitch_transform_custom: Path | None = option(None, _CUSTOM.format("pitch"), const=EXAMPLES, metavar="FILE")
    energy_transform_flatten: bool = option(False, "flatten the energy to each phrase's mean")
    energy_transform_invert: bool = option(False, "mirror the energy at each phrase's mean")
    energy_transform_amplify: float | None = option(
        None, "scale the energy's distance from each phrase's mean", least=-10, most=10, metavar="FACTOR"
    )
    energy_transform_shift: float | None = option(
        None,
        "add to the energy, log(1 + norm of a log-mel frame): less is louder",
        least=-100,
        most=100,
        metavar="NUMBER",
    )
    energy_transform_custom: Path | None = option(None, _CUSTOM.format("energy"), const=EXAMPLES, metavar="FILE")

    def __post_init__(self) -> None:
        for quantity in ("pitch", "energy"):
            given = list(self.transform(quantity))
            if "custom" in given and given != ["custom"]:
                name = f"--{quantity}-transform"
                raise OptionError(f"{name}-custom is applied alone; leave out {name}-{given[0]}, or do it in there")

    def transform(self, quantity: str) -> dict[str, Any]:
        """The given options of the transform of pitch or energy: flatten, invert, amplify, shift, custom."""
        names = ("flatten", "invert", "amplify", "shift", "custom")
        values = {name: getattr(self, f"{quantity}_transform_{name}") for name in names}
        return {name: value for name, value in values.items() if value is not None and value is not False}
