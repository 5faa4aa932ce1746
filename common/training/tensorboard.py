"""TensorBoard logs of a run: scalars, and the plots and sound of validation utterances."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from torch import Tensor

from common.config import AudioConfig
from common.files import writing
from common.training.objective import Example

if TYPE_CHECKING:
    import numpy as np
    from torch.utils.tensorboard import SummaryWriter

_HINT = "; it is for TensorBoard"
FLUSH_SECONDS = 30  # what a kill can lose of the curves; the JSON stream loses nothing


class TensorBoardLogs:
    """Writes one run's events into ``folder/<subset>``; those that are not ``enabled`` write nothing.

    A subset's folder is made with its first event. Raises OutputError where it cannot be written.
    """

    def __init__(self, folder: Path, *, enabled: bool = True) -> None:
        self.folder = folder
        self.enabled = enabled
        self._writers: dict[str, SummaryWriter] = {}
        self._excepthook = threading.excepthook

    def scalars(self, subset: str, iteration: int, values: dict[str, float]) -> None:
        """Add one point to each named curve of ``subset``, at ``iteration`` (updates since the start)."""
        if not self.enabled:
            return
        with self._writing(subset) as writer:
            for name, value in values.items():
                writer.add_scalar(name, value, iteration)

    def examples(
        self,
        subset: str,
        iteration: int,
        examples: Sequence[Example],
        *,
        audio: AudioConfig,
        symbols: Sequence[str] = (),
    ) -> None:
        """Add each utterance's picture and sound; ``audio`` is the run's, ``symbols`` are those of its ids."""
        if not self.enabled or not examples:
            return
        with self._writing(subset) as writer:
            for example in examples:
                picture = _picture(example, audio, symbols)
                writer.add_image(f"utterance/{_tag(example.name)}", picture, iteration, dataformats="HWC")
                for title, wave in example.audio.items():
                    tag = f"audio_{title}/{_tag(example.name)}"
                    writer.add_audio(tag, _playable(wave), iteration, sample_rate=audio.sampling_rate)
                for title, text in example.texts.items():
                    writer.add_text(f"text_{title}/{_tag(example.name)}", text, iteration)
            writer.flush()

    def close(self) -> None:
        """Write out what is pending and close the files; raises OutputError for the first that cannot be written."""
        with ExitStack() as stack:  # the others are closed, too
            for subset, writer in self._writers.items():
                stack.enter_context(self._writing(subset))
                stack.callback(writer.close)
        self._writers.clear()
        threading.excepthook = self._excepthook

    @contextmanager
    def _writing(self, subset: str) -> Iterator[SummaryWriter]:
        """Write to a subset's files; what they refuse is an OutputError."""
        with writing(self.folder / subset, _HINT):
            if subset not in self._writers:
                from torch.utils.tensorboard import SummaryWriter  # slow to import, and needed on one rank only

                threading.excepthook = self._on_thread_error
                self._writers[subset] = SummaryWriter(str(self.folder / subset), flush_secs=FLUSH_SECONDS)
            yield self._writers[subset]

    def _on_thread_error(self, args: threading.ExceptHookArgs) -> None:
        """A writer's thread dies of what cannot be written, and hands it to us at the next write: no traceback."""
        if not isinstance(args.exc_value, OSError):
            self._excepthook(args)


def _picture(example: Example, audio: AudioConfig, symbols: Sequence[str]) -> np.ndarray:
    """All of an utterance that can be drawn, over one time axis, as (height, width, 3)."""
    from common import plots  # matplotlib takes half a second to import, and other ranks never draw

    tokens = example.tokens  # phonological features are no symbols
    ids = tokens.tolist() if symbols and tokens is not None and tokens.dim() == 1 else []
    figure = plots.plot_utterance(
        example.mels,
        audio=example.mel_config or audio,
        title=": ".join(part for part in (_without_list(example.name), example.text) if part),
        symbols=[symbols[index] for index in ids],
        durations=example.durations,
        alignment=example.alignment,
        pitch=example.pitch,
        curves=example.curves,
    )
    return plots.to_image(figure)


def _tag(name: str) -> str:
    """``wavs/a b.wav (list.txt:7)`` -> ``wavs_a_b``, so that an utterance is one TensorBoard entry over time."""
    return re.sub(r"[^\w.-]+", "_", re.sub(r"\.\w+$", "", _without_list(name))) or "utterance"


def _without_list(name: str) -> str:
    """``wavs/a b.wav (list.txt:7)`` -> ``wavs/a b.wav``."""
    return re.sub(r" \([^()]*:\d+\)$", "", name)


def _playable(wave: Tensor) -> Tensor:
    """``(T,) -> (1, T)`` float32 on the CPU within [-1, 1]; an untrained model's sound can exceed it, or be NaN."""
    return wave.detach().float().cpu().nan_to_num(0.0).clamp(-1.0, 1.0)[None]
