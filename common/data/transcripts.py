"""The texts of a training list as symbol ids: encoded once, or, where words are drawn to be phones, in each epoch."""

from collections.abc import Sequence

from torch import Tensor

from common.config import TextConfig
from common.data.filelist import FilelistEntry
from common.text import RandomNumbers, TextFrontEnd, utterance_draws


class Transcripts:
    """Ids of each text of a list.

    Raises:
        InputError: a transcript cannot be encoded; names its line.
    """

    def __init__(
        self, entries: Sequence[FilelistEntry], text: TextConfig, *, unknown_symbols: str, seed: int = 0
    ) -> None:
        self._entries = entries
        self._seed = seed
        self._front_end = TextFrontEnd(text.of_transcripts, unknown_symbols=unknown_symbols)
        self._cleaned: list[str] = []
        self._ids: list[list[int]] = []
        for entry in entries:
            self._cleaned.append(self._front_end.read(entry.fields["text"], where=entry.where))
            self._ids.append(self._encode(len(self._ids)))
        self._front_end.warn_dropped(where=entries[0].where.rpartition(":")[0] if entries else "")

    def _encode(self, index: int, draw: RandomNumbers | None = None) -> list[int]:
        entry = self._entries[index]
        text = entry.fields["text"]
        return self._front_end.encode_cleaned(self._cleaned[index], text=text, where=entry.where, draw=draw)

    @property
    def mixes(self) -> bool:
        """Whether the same text becomes other symbols in another epoch."""
        return self._front_end.mixes

    def __getitem__(self, index: int) -> list[int]:
        """Ids (L,) of a text as validation reads it."""
        return self._ids[index]

    def inputs(self, ids: list[int]) -> Tensor:
        """What a network reads of ids: (L,) int64, or phonological features (L, n_features) float32."""
        return self._front_end.inputs(ids)

    def draw(self, index: int, *, epoch: int) -> list[int]:
        """Ids (L,) of a text as it is read in one epoch, which seed, epoch and index decide."""
        if not self.mixes:
            return self._ids[index]
        draws = utterance_draws(seed=self._seed, epoch=epoch, index=index)
        return self._encode(index, draws)
