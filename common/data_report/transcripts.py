"""Which transcripts of a corpus may not fit their recordings: by a voice's aligner, else by the speaking rate."""

import functools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from common.checkpoints import load_networks, open_checkpoint
from common.data_report.clip import MEASURES, Clip
from common.distributed import Ranks
from common.errors import OptionError
from common.pages import Recording, player_address
from common.registry import GeneratorSpec
from common.training.transcripts import measure_misfits

MISFIT, RATE = "misfit", "speaking rate"  # of MEASURES
MOST_LISTED = 30  # clips with a player


def with_misfits(clips: Sequence[Clip], checkpoint: Path, *, dataset: Path, lists: Sequence[Path]) -> tuple[Clip, ...]:
    """The clips of ``lists``, each with how badly its transcript fits, by the aligner of a voice.

    Raises InputError where the checkpoint has no aligner, or a clip cannot be read as the voice's.
    """
    opened = open_checkpoint(checkpoint, role="generator", ema=True)
    made, inference = opened.checkpoint, opened.spec.inference
    networks, config = load_networks(made, ema=opened.ema, device=torch.device("cpu"), where=str(checkpoint))
    if not (isinstance(inference, GeneratorSpec) and inference.has_aligner(config)):
        raise OptionError(f"--report-checkpoint {checkpoint}: no aligner; give a FastPitch with a learned alignment")
    assert inference.teacher_forced_dataset is not None and made.text is not None
    read = functools.partial(
        inference.teacher_forced_dataset, config=config, audio=made.audio, text=made.text, networks=networks
    )
    network: Any = next(iter(networks.values()))
    found = []
    for path in lists:
        found += measure_misfits(network.misfits, read(dataset, path, unknown_symbols="drop"), ranks=Ranks())
    return tuple(replace(clip, figures={**clip.figures, MISFIT: fit.misfit}) for clip, fit in zip(clips, found))


def worst_transcripts(clips: Sequence[Clip], *, dataset: Path, page: Path) -> list[Recording]:
    """The clips whose transcript fits worst, the worst first, for players of ``page``.

    Without misfits they are those of the oddest speaking rate, which only finds texts of another length.
    """
    name = MISFIT if any(MISFIT in clip.figures for clip in clips) else RATE
    known = [clip for clip in clips if name in clip.figures]
    values = np.array([clip.figures[name] for clip in known])
    distances = values if name == MISFIT else np.abs(np.log(values) - np.log(np.median(values))) if known else values
    found = []
    for index in np.argsort(-distances, kind="stable")[:MOST_LISTED]:
        item, measure = known[index].utterance, MEASURES[name]
        figure = f"{name} {measure.show(values[index])} {measure.unit}, usual {measure.show(np.median(values))}"
        address = player_address(dataset, item.wav, page=page)
        found.append(Recording(f"{item.wav} ({item.where})", item.text, figure, address))
    return found
