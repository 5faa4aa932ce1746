"""TensorBoard logs of a run: scalars, and the plots and sound of validation utterances."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from torch import Tensor

from common.errors import InputError
from common.training.objective import Example

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

FLUSH_SECONDS = 30  # what a kill can lose of the curves; the JSON stream loses nothing
CURVE_UNITS = {"duration": "mel frames", "durations": "mel frames"}
VOICED_ONLY = ("pitch",)  # curves in which a zero means that there is no value


class TensorBoardLogs:
    """Writes one run's events into ``folder/<subset>``; those that are not ``enabled`` write nothing.

    A subset's folder is made with its first event. Raises InputError where a folder cannot be made, and
    ValueError for a subset that was not announced.
    """

    def __init__(self, folder: Path, *, subsets: tuple[str, ...] = ("train", "val"), enabled: bool = True) -> None:
        self.folder = folder
        self.subsets = subsets
        self.enabled = enabled
        self._writers: dict[str, SummaryWriter] = {}

    def scalars(self, subset: str, iteration: int, values: dict[str, float]) -> None:
        """Add one point to each named curve of ``subset``, at ``iteration`` (updates since the start)."""
        if not self.enabled:
            return
        writer = self._writer(subset)
        for name, value in values.items():
            writer.add_scalar(name, value, iteration)

    def examples(
        self, subset: str, iteration: int, examples: list[Example], *, sampling_rate: int, hop_length: int | None = None
    ) -> None:
        """Add each utterance's spectrograms, curves and sound; ``sampling_rate`` in Hz, ``hop_length`` in samples."""
        if not self.enabled or not examples:
            return
        writer = self._writer(subset)
        for example in examples:
            self._add_pictures(writer, iteration, example, sampling_rate, hop_length)
            for title, wave in example.audio.items():
                tag = f"audio_{title}/{_tag(example.name)}"
                writer.add_audio(tag, _playable(wave), iteration, sample_rate=sampling_rate)
            for title, text in example.texts.items():
                writer.add_text(f"text_{title}/{_tag(example.name)}", text, iteration)
        writer.flush()

    def close(self) -> None:
        """Write out what is pending and close the files."""
        for writer in self._writers.values():
            writer.close()
        self._writers = {}

    def _add_pictures(
        self, writer: SummaryWriter, iteration: int, example: Example, sampling_rate: int, hop_length: int | None
    ) -> None:
        from common import plots  # matplotlib takes half a second to import, and other ranks never draw

        pictures = {}
        # Differences on a picture of their own, since all on one share a range of colors.
        for kind, mels in (("mel", example.mels), ("mel_difference", example.mel_differences)):
            if mels:
                pictures[kind] = plots.plot_mels(
                    mels, title=example.name, hop_length=hop_length, sampling_rate=sampling_rate
                )
        for kind, curves in example.curves.items():
            unit, gaps = CURVE_UNITS.get(kind, kind), kind in VOICED_ONLY
            pictures[kind] = plots.plot_curves(curves, title=f"{kind}: {example.name}", ylabel=unit, gaps=gaps)
        for title, alignment in example.alignments.items():
            pictures[title] = plots.plot_alignment(alignment, title=f"{title}: {example.name}")
        for kind, figure in pictures.items():
            writer.add_image(f"{kind}/{_tag(example.name)}", plots.to_image(figure), iteration, dataformats="HWC")

    def _writer(self, subset: str) -> SummaryWriter:
        if subset not in self.subsets:
            raise ValueError(f"TensorBoard subset {subset!r}: expected one of {', '.join(self.subsets)}")
        if subset not in self._writers:
            from torch.utils.tensorboard import SummaryWriter  # slow to import, and needed on one rank only

            try:
                self._writers[subset] = SummaryWriter(str(self.folder / subset), flush_secs=FLUSH_SECONDS)
            except OSError as error:
                raise InputError(f"{self.folder / subset}: cannot write TensorBoard logs ({error.strerror})") from error
        return self._writers[subset]


def _tag(name: str) -> str:
    """``wavs/a b.wav (list.txt:7)`` -> ``wavs_a_b``, so that an utterance is one TensorBoard entry over time."""
    bare = re.sub(r" \([^()]*:\d+\)$", "", name)
    return re.sub(r"[^\w.-]+", "_", re.sub(r"\.\w+$", "", bare)) or "utterance"


def _playable(wave: Tensor) -> Tensor:
    """``(T,) -> (1, T)`` float32 on the CPU within [-1, 1]; an untrained model's sound can exceed it, or be NaN."""
    return wave.detach().float().cpu().nan_to_num(0.0).clamp(-1.0, 1.0)[None]
