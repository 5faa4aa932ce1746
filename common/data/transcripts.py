"""The texts of a training list as symbol ids: encoded once, or, where words are drawn to be phones, in each epoch."""

from collections.abc import Sequence

from common.config import TextConfig
from common.data.filelist import FilelistEntry
from common.text import TextFrontEnd, utterance_draws


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
        self._front_end = TextFrontEnd(text, unknown_symbols=unknown_symbols)
        self._cleaned = [self._front_end.clean(entry.fields["text"]) for entry in entries]
        self._ids = [
            self._front_end.encode_cleaned(text, where=entry.where) for text, entry in zip(self._cleaned, entries)
        ]
        self._front_end.warn_dropped()

    @property
    def mixes(self) -> bool:
        """Whether the same text becomes other symbols in another epoch."""
        return self._front_end.mixes

    def __getitem__(self, index: int) -> list[int]:
        """Ids (L,) of a text as validation reads it."""
        return self._ids[index]

    def draw(self, index: int, *, epoch: int) -> list[int]:
        """Ids (L,) of a text as it is read in one epoch, which seed, epoch and index decide."""
        if not self.mixes:
            return self._ids[index]
        draws = utterance_draws(seed=self._seed, epoch=epoch, index=index)
        return self._front_end.encode_cleaned(self._cleaned[index], where=self._entries[index].where, draw=draws)
