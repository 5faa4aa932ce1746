"""FastPitch's training data: mels, durations, pitch and text of a list, and batches of them."""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from common.config import AudioConfig, TextConfig, differences, from_plain
from common.data import Batch
from common.errors import InputError
from common.filelist import FilelistEntry, read_filelist
from common.files import load_tensor, read_json
from common.text.front_end import TextFrontEnd

_COLUMNS = ("mel", "durations", "pitch", "text")


@dataclass(frozen=True)
class FastPitchBatch(Batch):
    """Utterances padded to the longest of them; everything after an utterance's length is zero."""

    tokens: Tensor  # (B, L) int64 symbol ids, or (B, L, n_features) float32
    token_lengths: Tensor  # (B,) int64
    mels: Tensor  # (B, n_mels, F) float32
    mel_lengths: Tensor  # (B,) int64
    durations: Tensor | None = None  # (B, L) int64, frames; they sum to mel_lengths. None: the model finds them
    pitch: Tensor | None = None  # (B, L) float32, normalised; with durations
    pitch_frames: Tensor | None = None  # (B, F) float32, normalised, 0 where unvoiced; without durations
    prior: Tensor | None = None  # (B, F, L) float32, `fastpitch.prior.padded_priors`; without durations
    speakers: Tensor | None = None  # (B,) int64

    @property
    def n_frames(self) -> Tensor:
        return self.mel_lengths.sum()

    def teacher_forcing(self) -> dict[str, Any]:
        """Arguments of ``FastPitch.forward`` that make it follow this batch's durations and pitch."""
        return {
            "tokens": self.tokens,
            "token_lengths": self.token_lengths,
            "speakers": self.speakers,
            "durations": self.durations,
            "pitch": self.pitch,
            "n_frames": self.mels.size(2),
        }


@dataclass(frozen=True)
class FastPitchUtterance:
    """One utterance as it stands on the disk, checked."""

    name: str  # "mels/a.pt (train.txt:7)"
    tokens: Tensor  # (L,) int64
    mel: Tensor  # (n_mels, F) float32
    durations: Tensor  # (L,) int64, frames
    pitch: Tensor  # (L,) float32, normalised
    speaker: int | None


class FastPitchDataset:
    """Utterances of a list ``mels/a.pt|durations/a.pt|pitch_char/a.pt|text``, with a speaker's number after it for
    a model of several speakers.

    Raises:
        InputError: the list or one of its mels is missing, a transcript cannot be encoded, a speaker is unknown, or
            the mels were made with other audio settings than ``audio``.
    """

    def __init__(
        self,
        dataset_path: Path,
        filelist: Path,
        *,
        audio: AudioConfig,
        text: TextConfig,
        n_speakers: int = 1,
        unknown_symbols: str = "error",
    ) -> None:
        self._folder = dataset_path
        self._n_mels = audio.n_mels
        self._entries = read_filelist(filelist, columns=_COLUMNS, optional=("speaker",))
        self._speakers = [_read_speaker(entry, n_speakers) for entry in self._entries]
        self.lengths = [self._mel_size(entry) for entry in self._entries]
        self._check_audio(audio)
        front_end = TextFrontEnd(text, unknown_symbols=unknown_symbols)
        self._tokens = [front_end.encode(entry.fields["text"], where=entry.where) for entry in self._entries]
        front_end.warn_dropped()

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, index: int) -> FastPitchUtterance:
        """Load and check one utterance.

        Raises:
            InputError: a file is missing or broken, or the files do not fit each other.
        """
        entry = self._entries[index]
        tokens = torch.tensor(self._tokens[index])
        mel = self._load(entry, "mel").float()
        durations = self._load(entry, "durations")
        pitch = self._load(entry, "pitch").float()
        if mel.dim() != 2 or mel.size(0) != self._n_mels or mel.size(1) == 0:
            raise _shape_error(entry, "mel", mel, wanted=f"({self._n_mels}, frames)")
        for column, values in (("durations", durations), ("pitch", pitch)):
            if values.shape != tokens.shape:
                raise _shape_error(entry, column, values, wanted=f"({len(tokens)},), one value a symbol of the text")
        if not torch.equal(durations, durations.round()) or durations.min() < 0:
            raise InputError(f"{entry.fields['durations']}: expected whole numbers of frames ({entry.where})")
        if durations.sum() != mel.size(1):
            raise InputError(
                f"{entry.fields['durations']}: {int(durations.sum())} frames in all, but {entry.fields['mel']} has "
                f"{mel.size(1)} ({entry.where})"
            )
        name = f"{entry.fields['mel']} ({entry.where})"
        return FastPitchUtterance(name, tokens, mel, durations.long(), pitch, self._speakers[index])

    def collate(self, items: list[FastPitchUtterance]) -> FastPitchBatch:
        """Pad utterances, in the order they come, into one batch."""
        speakers = [item.speaker for item in items]
        return FastPitchBatch(
            names=tuple(item.name for item in items),
            tokens=_pad([item.tokens for item in items]),
            token_lengths=torch.tensor([len(item.tokens) for item in items]),
            mels=_pad([item.mel.t() for item in items]).transpose(1, 2).contiguous(),
            mel_lengths=torch.tensor([item.mel.size(1) for item in items]),
            durations=_pad([item.durations for item in items]),
            pitch=_pad([item.pitch for item in items]),
            speakers=None if None in speakers else torch.tensor(speakers),
        )

    def _load(self, entry: FilelistEntry, column: str) -> Tensor:
        tensor = load_tensor(self._folder / entry.fields[column], where=entry.where)
        if not torch.isfinite(tensor).all():
            raise InputError(f"{entry.fields[column]}: holds values that are not finite ({entry.where})")
        return tensor

    def _mel_size(self, entry: FilelistEntry) -> int:
        """Bytes of the mel's file, which grow with its frames."""
        path = self._folder / entry.fields["mel"]
        try:
            return path.stat().st_size
        except OSError as error:
            raise InputError(f"{path}: no such file ({entry.where}); run extract_mels.py first") from error

    def _check_audio(self, audio: AudioConfig) -> None:
        """Feature folders say how they were made in ``audio.json``; folders made by the original's tools do not."""
        for folder in sorted({(self._folder / entry.fields["mel"]).parent for entry in self._entries}):
            path = folder / "audio.json"
            if not path.is_file():
                continue
            made_with = from_plain(AudioConfig, read_json(path), where=str(path))
            lines = differences(made_with, audio, names=("the mels", "the options"))
            if lines:
                raise InputError(f"{path}: the mels were made with other audio settings: {'; '.join(lines)}")


def build_dataset(
    args: argparse.Namespace, filelist: Path, *, audio: AudioConfig, text: TextConfig
) -> FastPitchDataset:
    """The dataset of a filelist, as the command line describes it."""
    return FastPitchDataset(
        args.dataset_path,
        filelist,
        audio=audio,
        text=text,
        n_speakers=args.n_speakers,
        unknown_symbols=args.unknown_symbols,
    )


def _pad(rows: list[Tensor]) -> Tensor:
    return pad_sequence(rows, batch_first=True)


def _shape_error(entry: FilelistEntry, column: str, got: Tensor, *, wanted: str) -> InputError:
    return InputError(f"{entry.fields[column]}: shape {tuple(got.shape)}, expected {wanted} ({entry.where})")


def _read_speaker(entry: FilelistEntry, n_speakers: int) -> int | None:
    """The speaker's number; None for a model of one voice."""
    if n_speakers == 1:
        return None
    if "speaker" not in entry.fields:
        raise InputError(
            f"{entry.where}: no speaker column; expected {'|'.join(_COLUMNS)}|speaker for several speakers"
        )
    value = entry.fields["speaker"]
    if not value.isdecimal() or int(value) >= n_speakers:
        raise InputError(f"{entry.where}: speaker {value!r}, expected a number from 0 to {n_speakers - 1}")
    return int(value)
