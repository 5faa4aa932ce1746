"""Which transcripts of a corpus may not fit their recordings: by a voice's aligner, else by the speaking rate."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from common.checkpoints import load_networks, open_checkpoint
from common.data_report.clip import MEASURES, Clip
from common.data_report.findings import REFUSED
from common.data_report.summary import DataReport
from common.distributed import Ranks
from common.errors import OptionError
from common.files import write_text
from common.pages import Recording, player_address
from common.registry import GeneratorSpec
from common.training.misfits import measure_misfits

MISFIT, RATE = "misfit", "speaking rate"  # of MEASURES
MOST_LISTED = 30  # clips with a player


def with_misfits(report: DataReport, checkpoint: Path) -> DataReport:
    """The report with how badly transcripts fit, by the aligner of a voice; not of clips that training would refuse.

    Raises InputError where the checkpoint has no aligner, or a recording is not as the voice's.
    """
    opened = open_checkpoint(checkpoint, role="generator", ema=True)
    made, inference = opened.checkpoint, opened.spec.inference
    networks, config = load_networks(made, ema=opened.ema, device=torch.device("cpu"), where=str(checkpoint))
    if not (isinstance(inference, GeneratorSpec) and inference.has_aligner(config)):
        raise OptionError(f"--report-checkpoint {checkpoint}: no aligner; give a FastPitch with a learned alignment")
    assert inference.teacher_forced_dataset is not None and made.text is not None
    network: Any = next(iter(networks.values()))
    refused = {finding.index for finding in report.findings if finding.level == REFUSED}
    usable = [clip.utterance for clip in report.clips if clip.utterance.index not in refused]
    if not usable:
        return report
    with TemporaryDirectory() as folder:
        lines = ("|".join(filter(None, (item.wav, item.text, item.speaker))) for item in usable)
        write_text(Path(folder) / "usable.txt", "".join(f"{line}\n" for line in lines))
        dataset = inference.teacher_forced_dataset(
            report.dataset,
            Path(folder) / "usable.txt",
            config=config,
            audio=made.audio,
            text=made.text,
            unknown_symbols="drop",
            networks=networks,
        )
        fits = measure_misfits(network.misfits, dataset, ranks=Ranks())
    clips = list(report.clips)
    for item, fit in zip(usable, fits):
        clips[item.index] = replace(clips[item.index], figures={**clips[item.index].figures, MISFIT: fit.misfit})
    return replace(report, clips=tuple(clips))


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
