"""Reading of the published numbers of HiFi-GAN, for the tests of its model and losses."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from golden_files import GOLDENS, entries, group, matching, read_case
from torch import Tensor

from common.config import from_plain
from hifigan.config import ModelConfig
from hifigan.model import Generator

GENERATORS = [Path(file).stem for file in matching("hifigan/generator_*.json")]
LAYOUT = {
    name: parts
    for name, parts in entries("hifigan/checkpoints.json", "layout").items()
    if (GOLDENS / "hifigan/checkpoints" / name).is_file()
}


def checkpoint_with(folder: str, part: str, *, ema: bool | None = None) -> str:
    """The first checkpoint of a folder that holds a part, with averaged weights of it or without where that matters."""
    files = {name: parts for name, parts in LAYOUT.items() if name.startswith(f"{folder}/") and part in parts}
    return next((name for name, parts in files.items() if ema in (None, bool(parts.get("gen_ema")))), "none")


NVIDIA = checkpoint_with("nvidia", "generator", ema=True)
NVIDIA_DISCRIMINATORS = checkpoint_with("nvidia", "mpd")
AUTHORS = checkpoint_with("jik876", "generator")
AUTHORS_DISCRIMINATORS = checkpoint_with("jik876", "mpd")


def model_config(values: dict[str, Any], **others: Any) -> ModelConfig:
    """The ModelConfig of a case, from the generator's constructor arguments."""
    return from_plain(ModelConfig, {**values, **others}, where="golden")


def generator_case(folder: Path, name: str) -> tuple[Generator, dict[str, Tensor]]:
    """A small published generator with its weights as they are trained, and the case's tensors."""
    about, tensors = read_case(folder, name)
    generator = Generator(model_config(about["config"]))
    generator.load_state_dict(group(tensors, "state_dict"))
    return generator.eval(), tensors


def formula_weights(parameters: list[list]) -> dict[str, Tensor]:
    """Weights made of each (name, shape, k, offset, scale) by the formula of the goldens' README."""
    return {name: _formula(shape, k=k, offset=offset, scale=scale) for name, shape, k, offset, scale in parameters}


def _formula(shape: list[int], *, k: int, offset: float, scale: float) -> Tensor:
    size = int(np.prod(shape))
    parts = [np.arange(start, min(start + 2**16, size), dtype=np.uint32) for start in range(0, size, 2**16)]
    parts = [_uniform(part, k=k, offset=offset, scale=scale) for part in parts]  # each stays in the cache
    return torch.from_numpy(np.concatenate(parts)).view(shape)


def _uniform(h: np.ndarray, *, k: int, offset: float, scale: float) -> np.ndarray:
    """Numbers of the positions ``h`` (uint32, used up), whose products wrap around at 2^32, as they should."""
    h += np.uint32(1)
    h *= np.uint32(2654435761)
    h += np.uint32((k + 1) * 2246822519 % 2**32)
    for shift, factor in ((15, 2246822519), (13, 3266489917)):
        h ^= h >> np.uint32(shift)
        h *= np.uint32(factor)
    h ^= h >> np.uint32(16)
    uniform = h / 2**32
    uniform -= 0.5
    uniform *= 2 * scale
    uniform += offset
    return uniform.astype(np.float32)
