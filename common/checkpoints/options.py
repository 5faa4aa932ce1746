"""Options of commands that open or convert checkpoints."""

from dataclasses import dataclass
from pathlib import Path

from common.options import option


@dataclass(frozen=True)
class EmaOptions:
    """Which weights to infer with, as ``ema`` of `common.checkpoints.loading.open_checkpoint`."""

    ema: bool | None = option(
        None,
        "use the EMA weights, which one checkpoint must have, or with --no-ema the raw ones (default: the EMA weights "
        "of each checkpoint that has them)",
        variable="EMA",
    )


@dataclass(frozen=True)
class ConversionOptions:
    """What a file of another implementation may not contain."""

    config: Path | None = option(
        None,
        "the network's architecture, for a source that holds none: constructor arguments in JSON, config.json of "
        "HiFi-GAN's authors, or Jasper's YAML",
        metavar="FILE",
    )
    discriminators: Path | None = option(
        None,
        "file of the discriminators of a HiFi-GAN whose name is not that of the generator's with do_ for g_",
        metavar="FILE",
    )
