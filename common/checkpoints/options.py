"""Options of commands that open or convert checkpoints."""

from dataclasses import dataclass
from pathlib import Path

from common.options import option


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
