"""FastPitch's training data: mels, pitch, text and maybe durations of a list, and batches of them."""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from common.audio.pitch_cache import PitchCache
from common.config import AudioConfig, TextConfig
from common.data.batch import Batch
from common.data.features import check_stored, load_feature, load_mel, mel_size, shape_error
from common.data.filelist import FilelistEntry
from common.data.transcripts import Transcripts
from common.distributed import Ranks
from common.errors import InputError
from fastpitch.frames import RECORDED, WITH_DURATIONS, FrameSource, RecordedFrames, StoredFrames, read_list
from fastpitch.prior import check_alignable, padded_priors
from fastpitch.speakers import speaker_id
from fastpitch.voice_pitch import VoicePitch, measure_voice

PITCH_CACHE = "pitch_cache"  # folder of a dataset, unless --pitch-cache names another


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
        """Arguments of ``FastPitch.forward`` that make it follow this batch's recordings."""
        return {
            "tokens": self.tokens,
            "token_lengths": self.token_lengths,
            "speakers": self.speakers,
            "durations": self.durations,
            "pitch": self.pitch,
            "pitch_frames": self.pitch_frames,
            "mels": self.mels,
            "mel_lengths": self.mel_lengths,
            "prior": self.prior,
            "n_frames": self.mels.size(2),
        }


@dataclass(frozen=True)
class FastPitchUtterance:
    """One utterance, checked; with durations and the pitch of each symbol, or with the pitch of each frame alone."""

    name: str  # "mels/a.pt (train.txt:7)"
    tokens: Tensor  # (L,) int64
    mel: Tensor  # (n_mels, F) float32
    speaker: int | None
    durations: Tensor | None = None  # (L,) int64, frames
    pitch: Tensor | None = None  # (L,) float32, normalised
    pitch_frames: Tensor | None = None  # (F,) float32, normalised


class _Spoken:
    """The texts and speakers of a list, which its sound comes on top of."""

    columns: tuple[str, ...]

    def __init__(
        self, entries: list[FilelistEntry], *, text: TextConfig, n_speakers: int, unknown_symbols: str, seed: int = 0
    ) -> None:
        self._entries = entries
        self.speakers = [
            speaker_id(entry, names=text.speakers, n_speakers=n_speakers, columns=self.columns) for entry in entries
        ]
        self._tokens = Transcripts(entries, text, unknown_symbols=unknown_symbols, seed=seed)

    def __len__(self) -> int:
        return len(self._entries)

    def collate(self, items: list[FastPitchUtterance]) -> FastPitchBatch:
        """Pad utterances, in the order they come, into one batch."""
        speakers = [item.speaker for item in items]
        token_lengths, mel_lengths = [len(item.tokens) for item in items], [item.mel.size(1) for item in items]
        aligned = items[0].durations is not None
        return FastPitchBatch(
            names=tuple(item.name for item in items),
            tokens=_pad([item.tokens for item in items]),
            token_lengths=torch.tensor(token_lengths),
            mels=_pad([item.mel.t() for item in items]).transpose(1, 2).contiguous(),
            mel_lengths=torch.tensor(mel_lengths),
            durations=_pad([item.durations for item in items]) if aligned else None,
            pitch=_pad([item.pitch for item in items]) if aligned else None,
            pitch_frames=None if aligned else _pad([item.pitch_frames for item in items]),
            prior=None if aligned else padded_priors(mel_lengths, token_lengths),
            speakers=None if None in speakers else torch.tensor(speakers),
        )


class FastPitchDataset(_Spoken):
    """Utterances of a list ``mels/a.pt|durations/a.pt|pitch_char/a.pt|text``, with a speaker after it for a model of
    several speakers: a name of ``text.speakers``, or a number where that names none.

    Raises:
        InputError: the list or one of its mels is missing, a transcript cannot be encoded, a speaker is unknown, or
            the mels were made with other audio settings than ``audio``.
    """

    columns = WITH_DURATIONS

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
        entries = read_list(filelist, learned_alignment=False)
        super().__init__(entries, text=text, n_speakers=n_speakers, unknown_symbols=unknown_symbols)
        if self._tokens.mixes:
            raise InputError(
                f"{filelist}: its durations are of the same symbols each time, but --p-arpabet {text.p_arpabet} draws "
                "them anew in each epoch; give 0 or 1, or train with --learned-alignment"
            )
        self.lengths = [mel_size(dataset_path, entry) for entry in entries]
        check_stored(dataset_path, entries, column="mel", audio=audio)

    def __getitem__(self, index: int) -> FastPitchUtterance:
        """Load and check one utterance.

        Raises:
            InputError: a file is missing or broken, or the files do not fit each other.
        """
        entry = self._entries[index]
        tokens = torch.tensor(self._tokens[index])
        mel = load_mel(self._folder, entry, n_mels=self._n_mels)
        durations = load_feature(self._folder, entry, "durations")
        pitch = load_feature(self._folder, entry, "pitch").float()
        for column, values in (("durations", durations), ("pitch", pitch)):
            if values.shape != tokens.shape:
                raise shape_error(entry, column, values, wanted=f"({len(tokens)},), one value a symbol of the text")
        if not torch.equal(durations, durations.round()) or durations.min() < 0:
            raise InputError(f"{entry.fields['durations']}: expected whole numbers of frames ({entry.where})")
        if durations.sum() != mel.size(1):
            raise InputError(
                f"{entry.fields['durations']}: {int(durations.sum())} frames in all, but {entry.fields['mel']} has "
                f"{mel.size(1)} ({entry.where})"
            )
        name = f"{entry.fields['mel']} ({entry.where})"
        return FastPitchUtterance(name, tokens, mel, self.speakers[index], durations=durations.long(), pitch=pitch)


class UnalignedDataset(_Spoken):
    """Utterances whose durations the model finds: a list ``wavs/a.wav|text``, whose mels and pitch are made as they
    are wanted, or ``mels/a.pt|pitch/a.pt|text``; a speaker after it as for `FastPitchDataset`.

    Pitch on the disk and in the cache is in Hz, and normalised by the voice's statistics, which `survey` sets before
    the first utterance is loaded.

    Raises:
        InputError: the list or its sound is missing or not as ``audio`` says, a transcript cannot be encoded or has
            more symbols than its recording has frames, or a speaker is unknown.
    """

    def __init__(
        self,
        dataset_path: Path,
        filelist: Path,
        *,
        audio: AudioConfig,
        text: TextConfig,
        cache: PitchCache,
        n_speakers: int = 1,
        unknown_symbols: str = "error",
        seed: int = 0,
    ) -> None:
        entries = read_list(filelist, learned_alignment=True)
        self.columns = tuple(name for name in entries[0].fields if name != "speaker")
        super().__init__(entries, text=text, n_speakers=n_speakers, unknown_symbols=unknown_symbols, seed=seed)
        self.source: FrameSource
        if self.columns == RECORDED:
            self.source = RecordedFrames(dataset_path, entries, audio=audio, cache=cache)
            for index, n_frames in enumerate(self.source.lengths):
                check_alignable(n_frames, len(self._tokens[index]), where=self._name(index))
        else:
            self.source = StoredFrames(dataset_path, entries, audio=audio)
        self.lengths = self.source.lengths
        self.voice: VoicePitch | None = None

    def __getitem__(self, index: int) -> FastPitchUtterance:
        """Load, or make, and check one utterance.

        Raises:
            InputError: a file is missing or broken, or its frames are fewer than the symbols of its text.
        """
        return self._load(index, self._tokens[index])

    def draw(self, index: int, *, epoch: int) -> FastPitchUtterance:
        """The same, of which some words may be phones that are letters in another epoch."""
        return self._load(index, self._tokens.draw(index, epoch=epoch))

    def _load(self, index: int, ids: list[int]) -> FastPitchUtterance:
        frames = self.source.load(index)
        tokens = torch.tensor(ids)
        name = self._name(index)
        check_alignable(frames.mel.size(1), len(tokens), where=name)
        assert self.voice is not None, "survey() comes before the first utterance"
        pitch = self.voice.normalise(frames.pitch, speaker=self.speakers[index])
        return FastPitchUtterance(name, tokens, frames.mel, self.speakers[index], pitch_frames=pitch)

    def _name(self, index: int) -> str:
        entry = self._entries[index]
        return f"{entry.fields[self.columns[0]]} ({entry.where})"


def build_dataset(
    args: argparse.Namespace, filelist: Path, *, audio: AudioConfig, text: TextConfig
) -> FastPitchDataset | UnalignedDataset:
    """The dataset of a filelist, as the command line describes it."""
    shared = {
        "audio": audio,
        "text": text,
        "n_speakers": args.n_speakers or max(1, len(text.speakers)),
        "unknown_symbols": args.unknown_symbols,
    }
    if not args.learned_alignment:
        return FastPitchDataset(args.dataset_path, filelist, **shared)
    folder = args.pitch_cache or args.dataset_path / PITCH_CACHE
    cache = PitchCache(folder, audio, method=args.pitch_method)
    return UnalignedDataset(args.dataset_path, filelist, cache=cache, seed=args.seed, **shared)


def survey(
    networks: dict[str, nn.Module],
    args: argparse.Namespace,
    *,
    training_set: FastPitchDataset | UnalignedDataset,
    validation_set: FastPitchDataset | UnalignedDataset,
    ranks: Ranks,
) -> None:
    """Measure the pitch statistics that the network lacks over the training list, and normalise both lists by them.

    All ranks share the work. A network that knows its voice already, as one that goes on training, is left alone.
    """
    if not args.learned_alignment:
        return
    network = networks["fastpitch"]
    if not (network.pitch_std > 0).all():
        measure_voice(network, training_set, ranks=ranks, n_workers=args.num_workers)
    for dataset in (training_set, validation_set):
        dataset.voice = VoicePitch(network.pitch_mean.cpu().clone(), network.pitch_std.cpu().clone())


def _pad(rows: list[Tensor]) -> Tensor:
    return pad_sequence(rows, batch_first=True)
