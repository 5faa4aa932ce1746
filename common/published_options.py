"""Options of the published toolkits that are spelled otherwise here or have gone, by command, with what replaces them.

A replacement without spaces is an option that does the same: the published name is read as that one. Any other text
says why the option no longer exists, and what to do. A parser that has an option itself reads it as its own.
`ArgumentParser.answer_published` reads the tables, and docs/MIGRATING.md shows them.
"""

from collections.abc import Iterable
from dataclasses import fields

from common.cli import option_of

_ARCHITECTURE = "the checkpoint holds the architecture; leave it out"
_AUDIO = "the checkpoint describes its mel-spectrograms; leave it out"
_TEXT = "the checkpoint describes how its text is read; leave it out"
_SCALE = "recordings are scaled by their own bit depth; leave it out"


def _each(names: str, replacement: str) -> dict[str, str]:
    """Map several options, separated by spaces, to one replacement."""
    return dict.fromkeys(names.split(), replacement)


_PROCESSES = _each(
    "--world-size --rank --dist-url --group-name --dist-backend",
    "the launcher says it, as torchrun --nproc-per-node N does; leave it out",
)


def architecture_options(configs: Iterable[type]) -> dict[str, str]:
    """Answers to the options of architectures, which checkpoints hold; ``configs`` are the models' dataclasses."""
    names = {field.name for config in configs for field in fields(config)}
    return {option_of(name): _ARCHITECTURE for name in sorted(names)}
