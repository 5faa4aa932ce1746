"""Options of commands that open or convert checkpoints, and command lines that depend on the checkpoints they name."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from common.cli import ArgumentParser, names_given
from common.errors import CheckpointError, OptionError
from common.options import option, option_of
from common.registry import ModelSpec, available_models, get_model

if TYPE_CHECKING:
    from common.checkpoints.loading import LoadedCheckpoint


@dataclass(frozen=True)
class EmaOptions:
    """Which weights to use for inference, like ``ema`` of `common.checkpoints.loading.open_checkpoint`."""

    ema: bool | None = option(
        None,
        "use the EMA weights, which at least one checkpoint must have; with --no-ema, use the raw ones (default: the "
        "EMA weights of each checkpoint that has them)",
        variable="EMA",
    )


@dataclass(frozen=True)
class ConversionOptions:
    """What a file from another implementation may lack."""

    config: Path | None = option(
        None,
        "the network's architecture, if the source lacks it: constructor arguments as JSON, the HiFi-GAN authors' "
        "config.json, or Jasper's YAML",
        metavar="FILE",
    )
    discriminators: Path | None = option(
        None,
        "file of HiFi-GAN's discriminators, if its name isn't the generator's with do_ instead of g_",
        metavar="FILE",
    )


def models_with(*roles: str) -> list[ModelSpec]:
    """Return the models that have one of these roles."""
    return [get_model(name) for role in roles for name in available_models(role)]


def named_models(argv: Sequence[str] | None, *roles: str) -> list[ModelSpec]:
    """Return the models whose checkpoints a command line names, or all models of a role if it names none."""
    given = names_given(argv)
    found = []
    for role in roles:
        models = models_with(role)
        found += [spec for spec in models if f"--{spec.option}" in given] or models
    return found


def add_checkpoint_options(parser: ArgumentParser, purposes: dict[str, str]) -> None:
    """Add an option for the checkpoint of each model with a role in ``purposes``, whose values end the help."""
    group = parser.add_argument_group("models")
    for spec in models_with(*purposes):
        text = f"checkpoint of a {spec.name} model{purposes[spec.role]}"
        group.add_argument(f"--{spec.option}", type=Path, metavar="FILE", help=text)


def parse_options(
    argv: Sequence[str] | None, parser: ArgumentParser, models: Sequence[ModelSpec], *, intermixed: bool = False
) -> argparse.Namespace:
    """Parse the options of ``models``; an unknown one exits with status 2.

    With ``intermixed``, optional positional arguments may appear between options.
    """
    parse = parser.parse_known_intermixed_args if intermixed else parser.parse_known_args
    args, unknown = parse(argv)
    if unknown:
        names = " and ".join(spec.name for spec in models) or "Griffin-Lim"
        word = unknown[0].partition("=")[0]
        advice = "" if word.startswith("-") else "; put quotes around a text or name of several words"
        parser.error(f"{word}: not an option of {names}{advice}")
    return args


def open_named_checkpoints(args: argparse.Namespace, *roles: str, quiet: bool = False) -> "dict[str, LoadedCheckpoint]":
    """Open the checkpoints that options name, and return them by role, with the weights that --ema selects.

    With ``quiet``, EMA weights are used without a note. Raises OptionError if two checkpoints have the same role;
    CheckpointError if one can't be read or is of another model, or if --ema is given and none has EMA weights.
    """
    from common.checkpoints.loading import open_checkpoint  # --help needs no PyTorch

    opened: dict[str, LoadedCheckpoint] = {}
    for spec in models_with(*roles):
        if (path := getattr(args, spec.option)) is None:
            continue
        if (other := opened.get(spec.role)) is not None:
            raise OptionError(f"--{other.spec.option} and --{spec.option} do the same job; give one of them")
        opened[spec.role] = open_checkpoint(path, model=spec.name, ema=True if quiet and args.ema is None else args.ema)
    if args.ema and opened:
        check_ema(list(opened.values()))
    return opened


def check_ema(opened: "Sequence[LoadedCheckpoint]") -> None:
    """Raise CheckpointError if none of the checkpoints has the EMA weights that ``--ema`` asks for."""
    if not any(one.ema for one in opened):
        raise CheckpointError(f"{' and '.join(str(one.path) for one in opened)}: no EMA weights; leave out --ema")


def architecture_answers(models: Sequence[ModelSpec]) -> dict[str, str]:
    """Return the replies to architecture options, which the originals require for inference."""
    names = {field.name for spec in models for field in fields(spec.config.ModelConfig)}
    return {option_of(name): "the checkpoint contains the architecture; leave it out" for name in sorted(names)}
