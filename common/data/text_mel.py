"""Training data for text-to-mel models: transcripts with recordings or stored mels, and batches of them."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from common.audio.mel import MelExtractor
from common.audio.wav import load_wav
from common.config import AudioConfig
from common.data.batch import Batch, Longest, join_batches
from common.data.features import check_stored, load_mel, mel_size, recorded_samples
from common.data.filelist import FilelistEntry, ListedDataset
from common.text.arpabet import RandomNumbers, utterance_draws
from common.text.config import TextConfig
from common.text.front_end import TextFrontEnd
from common.text.languages import refuse_rewritten_letters, warn_of_language

T = TypeVar("T", bound="TextMelBatch")


@dataclass(frozen=True)
class TextMelBatch(Batch):
    """Utterances, zero-padded to the longest."""

    tokens: Tensor  # (B, L) int64 symbol ids, or (B, L, n_features) float32
    token_lengths: Tensor  # (B,) int64
    mels: Tensor  # (B, n_mels, F) float32
    mel_lengths: Tensor  # (B,) int64
    texts: tuple[str, ...] = field(default=(), kw_only=True)  # as in the list; () or one per utterance

    @property
    def frame_lengths(self) -> Tensor:
        return self.mel_lengths

    @classmethod
    def of_one(cls: type[T], name: str, tokens: Tensor, mel: Tensor, *, text: str = "", **fields: Any) -> T:
        """Make a batch of one utterance: tokens (L,) or (L, n_features), mel (n_mels, F), and further ``fields``."""
        lengths = torch.tensor([len(tokens)]), torch.tensor([mel.size(1)])
        return cls((name,), tokens[None], lengths[0], mel[None], lengths[1], texts=(text,), **fields)


class Transcripts:
    """The symbol ids of each text in a list; raises InputError, which names the line, if one can't be encoded."""

    def __init__(
        self, entries: Sequence[FilelistEntry], text: TextConfig, *, unknown_symbols: str, seed: int = 0
    ) -> None:
        self._entries, self._seed = entries, seed
        self._front_end = TextFrontEnd(text.of_transcripts, unknown_symbols=unknown_symbols)
        self._cleaned: list[str] = []
        self._ids: list[list[int]] = []
        texts = {entry.where: entry.fields["text"] for entry in entries}
        if unknown_symbols == "error":
            refuse_rewritten_letters(texts, text.of_transcripts)
        if warns := os.environ.get("RANK", "0") == "0":  # other processes read the same list
            warn_of_language(texts, text.of_transcripts)
        dropped: Counter[str] = Counter()
        for entry in entries:
            cleaned, lost = self._front_end.read(entry.fields["text"], where=entry.where)
            self._cleaned.append(cleaned)
            ids, unknown = self._encode(len(self._ids))
            self._ids.append(ids)
            dropped.update(lost + unknown)
        if warns:
            self._front_end.warn_dropped(dropped, where=entries[0].where.rpartition(":")[0] if entries else "")

    def _encode(self, index: int, draw: RandomNumbers | None = None) -> tuple[list[int], Counter[str]]:
        entry = self._entries[index]
        text = entry.fields["text"]
        return self._front_end.encode_cleaned(self._cleaned[index], text=text, where=entry.where, draw=draw)

    @property
    def mixes(self) -> bool:
        """Whether a text's symbols differ between epochs."""
        return self._front_end.mixes

    def __getitem__(self, index: int) -> list[int]:
        """Return the ids (L,) of a text for validation."""
        return self._ids[index]

    def inputs(self, ids: list[int]) -> Tensor:
        """Convert ids to network input: (L,) int64, or phonological features (L, n_features) float32."""
        return self._front_end.inputs(ids)

    def draw(self, index: int, *, epoch: int) -> list[int]:
        """Return the ids (L,) of a text in an epoch, which depend only on seed, epoch and index."""
        if not self.mixes:
            return self._ids[index]
        draws = utterance_draws(seed=self._seed, epoch=epoch, index=index)
        return self._encode(index, draws)[0]


class TextMelDataset(ListedDataset):
    """Base class of text-to-mel datasets: a list with columns ``text`` and ``mel`` (from extract_mels.py) or ``wav``.

    Mels of recordings are computed on each access. A subclass makes utterances (`utterance`) and batches. Raises
    InputError if a file is missing, a transcript can't be encoded or is empty, a recording doesn't fit ``audio`` or is
    too short, or the mels were made with other audio settings.
    """

    def __init__(
        self,
        folder: Path,
        entries: Sequence[FilelistEntry],
        *,
        audio: AudioConfig,
        text: TextConfig,
        unknown_symbols: str = "error",
        seed: int = 0,
    ) -> None:
        self.folder = folder
        self.entries = entries
        self.text = text
        self.extractor = MelExtractor(audio)
        self.recorded = "wav" in entries[0].fields
        if self.recorded:
            n_samples = [recorded_samples(folder, entry, self.extractor) for entry in entries]
            self.lengths = [int(self.extractor.n_frames(n)) for n in n_samples]
        else:
            self.lengths = [mel_size(folder, entry) for entry in entries]  # bytes
            check_stored(folder, entries, column="mel", audio=audio)
        self.transcripts = Transcripts(entries, text, unknown_symbols=unknown_symbols, seed=seed)

    @property
    def longest(self) -> Longest:
        """The sizes of the longest utterance; raises InputError if a mel can't be read."""
        largest = max(range(len(self)), key=self.lengths.__getitem__)
        n_frames = self.lengths[largest] if self.recorded else self.load_mel(largest).size(1)
        return Longest(n_frames, max(len(self.transcripts[index]) for index in range(len(self))))

    def __getitem__(self, index: int) -> Any:
        """Load one utterance; raises InputError if files are broken or don't match each other or the text."""
        return self.utterance(index, self.transcripts.inputs(self.transcripts[index]))

    def draw(self, index: int, *, epoch: int) -> Any:
        """Load an utterance for an epoch, with words randomly replaced by phones (``TextConfig.p_arpabet``)."""
        return self.utterance(index, self.transcripts.inputs(self.transcripts.draw(index, epoch=epoch)))

    def utterance(self, index: int, tokens: Tensor) -> Any:
        """Return the utterance with ``tokens`` (L,) or (L, n_features) as a batch."""
        raise NotImplementedError

    collate = staticmethod(join_batches)

    def load_wave(self, index: int) -> Tensor:
        """Load the samples (T,) of a recording."""
        entry, rate = self.entries[index], self.extractor.config.sampling_rate
        return load_wav(self.folder / entry.fields["wav"], sampling_rate=rate, where=entry.where)

    def load_mel(self, index: int, wave: Tensor | None = None) -> Tensor:
        """Load the mel (n_mels, F), or compute it from ``wave`` if that is already loaded; raises InputError."""
        if not self.recorded:
            return load_mel(self.folder, self.entries[index], n_mels=self.extractor.config.n_mels)
        return self.extractor((self.load_wave(index) if wave is None else wave).unsqueeze(0))[0]

    def plain_batches(self, batch_size: int = 16) -> Iterator[TextMelBatch]:
        """Yield all utterances in order with only text and mel, which is faster than with pitch and priors."""
        for start in range(0, len(self), batch_size):
            batch = []
            for index in range(start, min(start + batch_size, len(self))):
                tokens = self.transcripts.inputs(self.transcripts[index])
                batch.append(TextMelBatch.of_one(self.name(index), tokens, self.load_mel(index)))
            yield join_batches(batch)
