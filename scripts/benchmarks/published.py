"""Looks up the published figures of docs/PUBLISHED_FIGURES.md that runs here are compared with: those of A100 GPUs."""

from collections.abc import Mapping
from functools import cache
from itertools import takewhile
from typing import Any

from common.pages.render import ROOT

HOP_LENGTH = 256  # samples
# Model -> columns of GPUs, of speed in mixed and in full precision; factor to valid frames/s (Jasper: sequences/s)
_SPEEDS = {
    "FastPitch": (0, 2, 3, 1.0),
    "HiFi-GAN": (2, 4, 3, 0.4),  # segments of 32 frames were counted as 80
    "Tacotron2": (0, 2, 3, 1.0),
    "WaveGlow": (0, 2, 3, 1 / HOP_LENGTH),
    "Jasper": (1, 3, 2, 1.0),
}


@cache
def published_rows(section: str, caption: str) -> list[list[str]]:
    """The cells of the rows of figures of the first table below a line with ``caption`` in a section."""
    lines = iter((ROOT / "docs/PUBLISHED_FIGURES.md").read_text(encoding="utf-8").splitlines())
    for start in (f"### {section}", caption, "| ---"):
        next(line for line in lines if start in line)
    rows = takewhile(lambda line: line.startswith("|"), lines)
    return [[cell.strip().replace(",", "") for cell in row.strip("|").split("|")] for row in rows]


def published_speed(model: str, *, mixed: bool, gpus: int) -> float | None:
    """The largest published speed of training with so many A100s, in valid frames/s, of Jasper in sequences/s."""
    if model not in _SPEEDS:
        return None
    of_gpus, of_mixed, of_full, factor = _SPEEDS[model]
    rows = published_rows(f"Training speed of {model.replace('2', ' 2')}", "DGX A100")
    return max(factor * float(row[of_mixed if mixed else of_full]) for row in rows if row[of_gpus] == str(gpus))


def published_latency(run: Mapping[str, Any]) -> float | None:
    """The published mean latency (s) of a run's networks, batch, precision and denoising on an A100, if any."""
    mixed, size = run["amp"], str(run["batch_size"])
    if run.get("jasper"):
        rows = published_rows("Latency of Jasper", "DGX A100")
        found = [row[5 if mixed else 9] for row in rows if row[0] == size and float(row[1]) == run.get("max_duration")]
        return float(found[0]) / 1000 if found else None
    if run.get("tacotron2") and run.get("waveglow"):
        rows = published_rows("Tacotron 2 with WaveGlow", "DGX A100")
        found = [row[4] for row in rows if [row[0], row[2] == "FP16", row[3]] == [size, mixed, "256"]]
        return float(found[0]) if found else None
    vocoder = "HiFi-GAN" if run.get("hifigan") else "WaveGlow" if run.get("waveglow") else None
    if not run.get("fastpitch") or vocoder is None:
        return None
    caption = f"DGX A100 80GB, one GPU, with{'' if run.get('denoising_strength') else 'out'} denoising"
    rows = published_rows(f"FastPitch with {vocoder}", caption if vocoder == "HiFi-GAN" else "DGX A100")
    found = [row[2] for row in rows if row[0] == size and (row[1] == "FP16") == mixed]
    return float(found[0]) if found else None
