"""The checkpoints that inference is given: one to make mels of text, one to make sound of mels, or only one of them."""

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

from common.checkpoints.checkpoint import Checkpoint, load_checkpoint
from common.errors import CheckpointError
from common.registry import GENERATORS, VOCODERS
from common.synthesis.arguments import given_checkpoint, text_config_from_args


@dataclass(frozen=True)
class Given:
    """A checkpoint that was given to speak with."""

    model: str
    path: Path
    checkpoint: Checkpoint
    ema: bool  # its averaged weights speak


def open_checkpoints(args: argparse.Namespace) -> tuple[Given | None, Given | None]:
    """The generator's and the vocoder's checkpoint; with ``--ema`` each that has averaged weights speaks with them.

    Raises:
        CheckpointError: one cannot be read or is of another model, or none has averaged weights for ``--ema``.
    """
    given = [given_checkpoint(args, GENERATORS), given_checkpoint(args, VOCODERS)]
    generator, vocoder = [one and open_checkpoint(*one, ema=args.ema) for one in given]
    without = [str(one.path) for one in (generator, vocoder) if one and not one.ema]
    if args.ema and len(without) == sum(map(bool, given)):
        raise CheckpointError(f"{' and '.join(without)}: holds no averaged weights; leave out --ema")
    if args.ema and without:
        print(f"note: {without[0]} holds no averaged weights; --ema is for the other checkpoint alone")
    if generator is not None:
        text = text_config_from_args(args, generator.checkpoint.text, where=generator.path)
        generator = replace(generator, checkpoint=replace(generator.checkpoint, text=text))
    return generator, vocoder


def open_checkpoint(model: str, path: Path, *, ema: bool) -> Given:
    """A checkpoint, which must be of ``model``."""
    checkpoint = load_checkpoint(path, training=False)
    if checkpoint.model != model:
        raise CheckpointError(f"{path}: a checkpoint of {checkpoint.model}, expected one of {model}")
    return Given(model, path, checkpoint, ema=ema and checkpoint.ema is not None)
