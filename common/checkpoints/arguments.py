"""The command-line option that says which weights of a checkpoint to infer with."""

import argparse


def add_ema_argument(parser: argparse._ActionsContainer) -> None:
    """Add ``--ema`` and ``--no-ema``; the value is that of ``ema`` of `common.checkpoints.open_checkpoint`."""
    parser.add_argument(
        "--ema",
        action=argparse.BooleanOptionalAction,
        help="use the EMA weights, which one checkpoint must have, or with --no-ema the raw ones; if not given, the "
        "EMA weights of each checkpoint that has them",
    )
