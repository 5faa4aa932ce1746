"""The texts of a training list as symbol ids: encoded once, or, where words are drawn to be phones, in each epoch."""

from collections.abc import Sequence

from torch import Tensor

from common.config import TextConfig
from common.data.filelist import FilelistEntry
from common.errors import InputError
from common.text import RandomNumbers, TextFrontEnd, name_counts, quote, utterance_draws
from common.text.symbols import FEATURE_TABLE

MAX_DROPPED = 0.01  # share of a list's symbols


class Transcripts:
    """Ids of each text of a list.

    Raises:
        InputError: a transcript cannot be encoded, by its line; or more than MAX_DROPPED of all symbols are unknown.
    """

    def __init__(
        self, entries: Sequence[FilelistEntry], text: TextConfig, *, unknown_symbols: str, seed: int = 0
    ) -> None:
        self._entries = entries
        self._seed = seed
        self._front_end = TextFrontEnd(text.of_transcripts, unknown_symbols=unknown_symbols)
        self._cleaned: list[str] = []
        self._ids: list[list[int]] = []
        incomplete: list[FilelistEntry] = []
        for entry in entries:
            n_dropped = self._front_end.dropped.total()
            self._cleaned.append(self._front_end.read(entry.fields["text"], where=entry.where))
            self._ids.append(self._encode(len(self._ids)))
            if self._front_end.dropped.total() > n_dropped:
                incomplete.append(entry)
        self._check_dropped(incomplete)
        self._front_end.warn_dropped()

    def _encode(self, index: int, draw: RandomNumbers | None = None) -> list[int]:
        entry = self._entries[index]
        text = entry.fields["text"]
        return self._front_end.encode_cleaned(self._cleaned[index], text=text, where=entry.where, draw=draw)

    def _check_dropped(self, incomplete: Sequence[FilelistEntry]) -> None:
        """Refuse by InputError a list of which more than a few symbols are lost: its voice would learn other words."""
        dropped, config = self._front_end.dropped, self._front_end.config
        n_symbols = dropped.total() + sum(map(len, self._ids))
        if dropped.total() <= MAX_DROPPED * n_symbols:
            return
        advice = "correct the transcripts, or use other --text-cleaners or another --symbol-set"
        if config.input_type == "pf":
            advice = "correct the transcripts, or add the phones to the file of --phone-features"
        elif config.input_type == "phone":
            advice = "correct the transcripts, or use another --symbol-set; if they are text, add --g2p espeak"
        first, table = incomplete[0], config.symbol_set or FEATURE_TABLE
        raise InputError(
            f"{first.where.rpartition(':')[0]}: {dropped.total()} of {n_symbols} symbols "
            f"({dropped.total() / n_symbols:.1%}) are not in symbol set {table}, and at most "
            f"{MAX_DROPPED:.0%} may be dropped: {name_counts(dropped, most=5)}; "
            f"first in {quote(first.fields['text'])} ({first.where}); "
            f"{advice}"
        )

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
