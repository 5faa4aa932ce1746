"""Tacotron 2's training data: text with recordings or stored mels, and batches of them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from common.audio.mel import MelExtractor
from common.audio.wav import load_wav
from common.config import AudioConfig, TextConfig
from common.data.batch import Batch
from common.data.features import check_stored, load_mel, mel_size, recorded_samples
from common.data.filelist import FilelistEntry, first_fields, read_filelist
from common.data.transcripts import Transcripts
from common.errors import InputError
from tacotron2.arg_parser import TrainingOptions

_OTHER_LIST = {  # column to read -> suffix that the other kind of list has, and what is wrong then
    "wav": (".pt", "mels; add --load-mel-from-disk"),
    "mel": (".wav", "recordings; leave out --load-mel-from-disk, or give the list that extract_mels.py wrote"),
}


@dataclass(frozen=True)
class Tacotron2Batch(Batch):
    """Utterances padded to the longest of them; everything after an utterance's length is zero."""

    tokens: Tensor  # (B, L) int64 symbol ids
    token_lengths: Tensor  # (B,) int64
    mels: Tensor  # (B, n_mels, F) float32
    mel_lengths: Tensor  # (B,) int64

    @property
    def n_frames(self) -> Tensor:
        return self.mel_lengths.sum()

    @property
    def gate_targets(self) -> Tensor:
        """(B, F) float32: 1 from an utterance's last frame on."""
        position = torch.arange(self.mels.size(2), device=self.mels.device)
        return (position >= self.mel_lengths.unsqueeze(1) - 1).float()

    def teacher_forcing(self) -> dict[str, Any]:
        """Arguments of ``Tacotron2.forward``."""
        return {name: value for name, value in vars(self).items() if name != "names"}


@dataclass(frozen=True)
class Tacotron2Utterance:
    """One utterance, checked."""

    name: str  # "wavs/a.wav (train.txt:7)"
    tokens: Tensor  # (L,) int64
    mel: Tensor  # (n_mels, F) float32


class Tacotron2Dataset:
    """Utterances of a list ``wavs/a.wav|text``, or with ``mels_from_disk`` of ``mels/a.pt|text``.

    A column of speakers is ignored, and so are durations and pitch of a list made for FastPitch,
    ``mels/a.pt|durations/a.pt|pitch_char/a.pt|text``.

    Raises:
        InputError: the list or a file in it is missing, a transcript cannot be encoded or is empty, a recording
            does not fit ``audio``, or the mels were made with other audio settings.
    """

    def __init__(
        self,
        dataset_path: Path,
        filelist: Path,
        *,
        audio: AudioConfig,
        text: TextConfig,
        mels_from_disk: bool = False,
        unknown_symbols: str = "error",
        seed: int = 0,
    ) -> None:
        self._folder = dataset_path
        self._audio = audio
        self._column = "mel" if mels_from_disk else "wav"
        self._extractor = MelExtractor(audio)
        self._entries = _read_list(filelist, self._column)
        self.lengths = [self._size(entry) for entry in self._entries]
        if mels_from_disk:
            check_stored(dataset_path, self._entries, column="mel", audio=audio)
        self._tokens = Transcripts(self._entries, text, unknown_symbols=unknown_symbols, seed=seed)

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, index: int) -> Tacotron2Utterance:
        """Load and check one utterance; raises InputError for a missing or broken file."""
        return self._load(index, self._tokens[index])

    def draw(self, index: int, *, epoch: int) -> Tacotron2Utterance:
        """The utterance in an epoch of training, in which words may be random phones (``TextConfig.p_arpabet``)."""
        return self._load(index, self._tokens.draw(index, epoch=epoch))

    @staticmethod
    def collate(items: list[Tacotron2Utterance]) -> Tacotron2Batch:
        """Pad utterances, in the order they come, into one batch."""
        return Tacotron2Batch(
            names=tuple(item.name for item in items),
            tokens=pad_sequence([item.tokens for item in items], batch_first=True),
            token_lengths=torch.tensor([len(item.tokens) for item in items]),
            mels=pad_sequence([item.mel.t() for item in items], batch_first=True).transpose(1, 2).contiguous(),
            mel_lengths=torch.tensor([item.mel.size(1) for item in items]),
        )

    def _load(self, index: int, ids: list[int]) -> Tacotron2Utterance:
        entry = self._entries[index]
        path = entry.fields[self._column]
        if self._column == "mel":
            mel = load_mel(self._folder, entry, n_mels=self._audio.n_mels)
        else:
            wave = load_wav(self._folder / path, sampling_rate=self._audio.sampling_rate, where=entry.where)
            mel = self._extractor(wave.unsqueeze(0))[0]
        return Tacotron2Utterance(f"{path} ({entry.where})", torch.tensor(ids), mel)

    def _size(self, entry: FilelistEntry) -> int:
        """Samples of a recording, or bytes of a mel's file: both grow with the frames."""
        if self._column == "mel":
            return mel_size(self._folder, entry)
        return recorded_samples(self._folder, entry, self._extractor)


def build_dataset(
    options: TrainingOptions, filelist: Path, *, audio: AudioConfig, text: TextConfig, training: bool
) -> Tacotron2Dataset:
    """The dataset of a training or validation list, which are read alike."""
    return Tacotron2Dataset(
        options.dataset_path,
        filelist,
        audio=audio,
        text=text,
        mels_from_disk=options.load_mel_from_disk,
        unknown_symbols=options.unknown_symbols,
        seed=options.seed,
    )


def teacher_forced_dataset(
    dataset_path: Path, filelist: Path, *, audio: AudioConfig, text: TextConfig, unknown_symbols: str, **_: Any
) -> Tacotron2Dataset:
    """The utterances of a list of mels or recordings, without anything random."""
    from_disk = first_fields(filelist)[0].endswith(".pt")
    return Tacotron2Dataset(
        dataset_path, filelist, audio=audio, text=text, mels_from_disk=from_disk, unknown_symbols=unknown_symbols
    )


def _read_list(path: Path, column: str) -> list[FilelistEntry]:
    """The list's entries with ``column`` and text, whatever else it has; raises InputError."""
    first = first_fields(path)
    suffix, problem = _OTHER_LIST[column]
    if first[0].endswith(suffix):
        raise InputError(f"{path}: a list of {problem}")
    features = [name for name, value in zip(("durations", "pitch"), first[1:]) if value.endswith(".pt")]
    return read_filelist(path, columns=(column, *features, "text"), optional=("speaker",))
