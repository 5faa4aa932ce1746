"""Measure how badly transcripts match their recordings, with a voice's aligner."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from common.checkpoints.loading import load_networks, open_checkpoint
from common.data_report.clip import Clip
from common.errors import OptionError
from common.files import write_text


def with_misfits(clips: Sequence[Clip], refused: Collection[int], *, dataset: Path, checkpoint: Path) -> list[Clip]:
    """Add each clip's misfit of transcript and recording, by a voice's aligner, except for the indices in ``refused``.

    Raises InputError if the checkpoint has no aligner, or a recording doesn't have the voice's format.
    """
    opened = open_checkpoint(checkpoint, role="generator", ema=True)
    made = opened.checkpoint
    networks, config = load_networks(made, ema=opened.ema, device=torch.device("cpu"), where=str(checkpoint))
    if not config.has_aligner:
        raise OptionError(f"--report-checkpoint {checkpoint}: no aligner; give a FastPitch with a learned alignment")
    assert made.text is not None
    network: Any = next(iter(networks.values()))
    usable = [clip.utterance for clip in clips if clip.utterance.index not in refused]
    if not usable:
        return list(clips)
    settings = {"config": config, "audio": made.audio, "text": made.text, "unknown_symbols": "drop"}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "usable.txt"
        lines = ("|".join(filter(None, (item.wav, item.text, item.speaker))) for item in usable)
        write_text(path, "".join(f"{line}\n" for line in lines))
        open_dataset = opened.spec.data_function.teacher_forced_dataset
        loaded = open_dataset(dataset, path, networks=networks, **settings)
        misfits = [value for batch in loaded.plain_batches() for value in network.misfits(batch).tolist()]
    found = {item.index: {"misfit": misfit} for item, misfit in zip(usable, misfits)}
    return [replace(clip, figures=clip.figures | found.get(clip.utterance.index, {})) for clip in clips]
