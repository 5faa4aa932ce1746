"""HiFi-GAN's data: random segments of recordings for training, complete ones for validation; mels from files."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from common.audio.mel import FLOOR, MelExtractor, compress
from common.config import AudioConfig
from common.data.batch import Batch
from common.data.features import check_made_with
from common.data.filelist import FilelistEntry
from common.data.recordings import Recordings, random_start
from common.errors import InputError
from common.files import load_tensor
from hifigan.arg_parser import TrainingOptions

SILENCE = float(compress(torch.tensor(FLOOR)))  # log-mel of silence


@dataclass(frozen=True)
class HifiganBatch(Batch):
    """Recordings, or segments of them, zero-padded; each is a multiple of the hop length."""

    audio: Tensor  # (B, T) float32 in [-1, 1]
    audio_lengths: Tensor  # (B,) int64 samples, multiples of the hop length
    hop_length: int  # samples
    mels: Tensor | None = None  # (B, n_mels, T / hop) float32; None: computed from the audio

    @property
    def n_frames(self) -> Tensor:
        return self.mel_lengths.sum()

    @property
    def mel_lengths(self) -> Tensor:
        """(B,) frames."""
        return self.audio_lengths // self.hop_length


@dataclass(frozen=True)
class HifiganUtterance:
    """A recording or a segment of it, with its mel where that is read from a file."""

    name: str  # "wavs/a.wav (train.txt:7)"
    audio: Tensor  # (T,) float32
    mel: Tensor | None  # (n_mels, T / hop) float32


class HifiganDataset:
    """Recordings of a list ``wavs/a.wav``; further columns of a text-to-mel list (text, speaker) are ignored.

    ``draw`` gives a random segment of ``segment_size`` samples, for training; indexing gives the complete recording,
    without the samples after its last complete frame, for validation. Recordings are scaled to ``audio.peak``. With
    ``mels_folder`` the mel of ``wavs/x.wav`` is read from ``<mels_folder>/x.pt`` and must have the recording's number
    of frames.

    Raises:
        InputError: the list, a recording or the folder is missing, a recording is not as ``audio`` says, or the mels
            were made with other audio settings.
    """

    def __init__(
        self,
        dataset_path: Path,
        filelist: Path,
        *,
        audio: AudioConfig,
        segment_size: int,
        seed: int,
        mels_folder: Path | None = None,
    ) -> None:
        self._audio = audio
        self._segment_size = segment_size
        self._seed = seed
        self._mels_folder = mels_folder
        self._extractor = MelExtractor(audio)
        self._recordings = Recordings(dataset_path, filelist, audio=audio)
        self.lengths = self._recordings.lengths  # samples
        if mels_folder is not None:
            self._check_mels(mels_folder)

    def __len__(self) -> int:
        return len(self._recordings)

    def __getitem__(self, index: int) -> HifiganUtterance:
        """The complete recording."""
        entry, hop = self._recordings.entries[index], self._audio.hop_length
        n_frames = self.lengths[index] // hop
        wanted = -(-self._extractor.min_samples // hop)  # frames
        if n_frames < wanted:
            raise InputError(
                f"{entry.fields['wav']}: {self.lengths[index]} samples, too short to validate on; "
                f"a mel needs at least {wanted * hop} ({entry.where})"
            )
        mel = self._load_mel(index)
        wave = self._recordings.load(index, start=0, n_samples=n_frames * hop)
        return HifiganUtterance(self._recordings.name(index), wave, None if mel is None else mel[:, :n_frames])

    def draw(self, index: int, *, epoch: int) -> HifiganUtterance:
        """A segment from a random place, which seed, epoch and index decide; a shorter recording is zero-padded.

        With mels from files it begins with a frame.
        """
        n_samples, size, hop = self.lengths[index], self._segment_size, self._audio.hop_length
        start_of = partial(random_start, seed=self._seed, epoch=epoch, index=index)
        mel = self._load_mel(index)
        if mel is None:
            start = start_of(n_samples - size)
        else:
            first = start_of(n_samples // hop - size // hop)
            start = first * hop
            mel = mel[:, first : min(first + size // hop, n_samples // hop)]
            mel = F.pad(mel, (0, size // hop - mel.size(1)), value=SILENCE)
        wave = self._recordings.load(index, start=start, n_samples=min(size, n_samples - start))
        return HifiganUtterance(self._recordings.name(index), F.pad(wave, (0, size - len(wave))), mel)

    def collate(self, items: list[HifiganUtterance]) -> HifiganBatch:
        """Pad utterances into one batch, in their order."""
        mels = [item.mel.t() for item in items if item.mel is not None]
        return HifiganBatch(
            names=tuple(item.name for item in items),
            audio=pad_sequence([item.audio for item in items], batch_first=True),
            audio_lengths=torch.tensor([len(item.audio) for item in items]),
            hop_length=self._audio.hop_length,
            mels=pad_sequence(mels, batch_first=True).transpose(1, 2).contiguous() if mels else None,
        )

    def _load_mel(self, index: int) -> Tensor | None:
        """The recording's mel from its file, checked."""
        if self._mels_folder is None:
            return None
        entry = self._recordings.entries[index]
        path = _mel_path(self._mels_folder, entry)
        mel = load_tensor(path, where=entry.where).float()
        wanted = (self._audio.n_mels, self._extractor.n_frames(self.lengths[index]))
        if mel.shape != wanted:
            raise InputError(
                f"{path}: shape {tuple(mel.shape)}, expected {wanted} for the {self.lengths[index]} samples of "
                f"{entry.fields['wav']} ({entry.where}); extract the mels again from these recordings"
            )
        if not torch.isfinite(mel).all():
            raise InputError(f"{path}: holds values that are not finite ({entry.where})")
        return mel

    def _check_mels(self, folder: Path) -> None:
        """All mels are there, and are what ``audio`` says; folders made by the original's tools have no description."""
        for entry in self._recordings.entries:
            if not (path := _mel_path(folder, entry)).is_file():
                raise InputError(
                    f"{path}: no such file, for {entry.fields['wav']} ({entry.where}); "
                    "make the mels with scripts/extract_fine_tune_mels.sh or extract_mels.py"
                )
        check_made_with(folder, self._audio, name="mels")  # the peak included: it is that of the recordings


def _mel_path(folder: Path, entry: FilelistEntry) -> Path:
    """``wavs/anna/1.wav`` has its mel in ``<folder>/anna/1.pt``."""
    first, *rest = PurePosixPath(entry.fields["wav"]).with_suffix(".pt").parts
    return folder.joinpath(*(rest or [first]))


def build_dataset(
    options: TrainingOptions, filelist: Path, *, audio: AudioConfig, text: None = None, training: bool = True
) -> HifiganDataset:
    """The dataset of a filelist, for training and for validation."""
    return HifiganDataset(
        options.dataset_path,
        filelist,
        audio=audio,
        segment_size=options.segment_size,
        seed=options.seed,
        mels_folder=options.mels_folder,
    )
