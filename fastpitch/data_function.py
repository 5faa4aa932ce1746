"""FastPitch's training data: mels, pitch, text and maybe durations of a list, and batches of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from common.audio.pitch_cache import PitchCache
from common.config import AudioConfig, TextConfig
from common.data.features import shape_error
from common.data.filelist import FilelistEntry
from common.data.transcripts import Transcripts
from common.distributed import Gather, Ranks
from common.errors import InputError
from fastpitch.batch import FastPitchBatch
from fastpitch.features import FeatureSource, RecordedFeatures, StoredFeatures
from fastpitch.model import FastPitch, ModelConfig
from fastpitch.options import TrainingOptions
from fastpitch.pitch_statistics import measure_pitch
from fastpitch.prior import check_alignable, padded_priors
from fastpitch.training_list import has_durations, read_list, speaker_id

PITCH_CACHE = "pitch_cache"  # folder of a dataset, unless --pitch-cache names another


@dataclass(frozen=True)
class FastPitchUtterance:
    """One utterance, checked; with durations and the pitch of each symbol, or with the pitch of each frame alone."""

    name: str  # "mels/a.pt (train.txt:7)"
    tokens: Tensor  # (L,) int64
    mel: Tensor  # (n_mels, F) float32
    speaker: int | None
    durations: Tensor | None = None  # (L,) int64, frames
    pitch: Tensor | None = None  # (L,) float32, normalized
    pitch_frames: Tensor | None = None  # (F,) float32, normalized


class FastPitchDataset:
    """Utterances of a list (`fastpitch.training_list`), with a speaker in the last column for a model of several
    speakers: a name of ``text.speakers``, or a number where that names none.

    Lists without durations have pitch in Hz: `normalize_pitch_as` comes before the first utterance is loaded.

    Raises:
        InputError: a transcript cannot be encoded or has more symbols than its recording has frames, a speaker is
            unknown, or durations belong to symbols that ``text`` draws in each epoch.
    """

    def __init__(
        self,
        entries: Sequence[FilelistEntry],
        source: FeatureSource,
        *,
        text: TextConfig,
        n_speakers: int,
        unknown_symbols: str,
        seed: int = 0,
    ) -> None:
        self.source = source
        self.lengths = source.lengths
        self._pitch_mean = self._pitch_std = torch.zeros(0)  # Hz; of all speakers, or of each
        self._entries = entries
        self.speakers = [speaker_id(entry, names=text.speakers, n_speakers=n_speakers) for entry in entries]
        self._tokens = Transcripts(entries, text, unknown_symbols=unknown_symbols, seed=seed)
        if "durations" in entries[0].fields and self._tokens.mixes:
            raise InputError(
                f"{entries[0].where.rpartition(':')[0]}: durations belong to fixed symbols, but --p-arpabet "
                f"{text.p_arpabet} draws other ones in each epoch; give 0 or 1, or train with --learned-alignment"
            )
        if "wav" in entries[0].fields:  # whose frames are known without reading them
            for index, n_frames in enumerate(self.lengths):
                check_alignable(n_frames, len(self._tokens[index]), where=self._name(index))

    def normalize_pitch_as(self, network: FastPitch) -> None:
        """Normalize the pitch of frames by a network's statistics."""
        self._pitch_mean, self._pitch_std = network.pitch_mean.cpu().clone(), network.pitch_std.cpu().clone()

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, index: int) -> FastPitchUtterance:
        """Load one utterance; raises InputError where files are broken or do not fit each other or the text."""
        return self._load(index, self._tokens[index])

    def draw(self, index: int, *, epoch: int) -> FastPitchUtterance:
        """The same with the symbols that are drawn in one epoch."""
        return self._load(index, self._tokens.draw(index, epoch=epoch))

    def _load(self, index: int, ids: list[int]) -> FastPitchUtterance:
        tokens, name, speaker = torch.tensor(ids), self._name(index), self.speakers[index]
        features = self.source.load(index)
        mel, pitch, durations = features.mel, features.pitch, features.durations
        if durations is not None:
            for column, values in (("durations", durations), ("pitch", pitch)):
                if values.shape != tokens.shape:
                    wanted = f"({len(tokens)},), one value a symbol of the text"
                    raise shape_error(self._entries[index], column, values, wanted=wanted)
            return FastPitchUtterance(name, tokens, mel, speaker, durations=durations, pitch=pitch)
        check_alignable(mel.size(1), len(tokens), where=name)
        which = 0 if speaker is None or len(self._pitch_mean) == 1 else speaker
        normalized = (pitch - self._pitch_mean[which]).div(self._pitch_std[which]).masked_fill(pitch == 0, 0.0)
        return FastPitchUtterance(name, tokens, mel, speaker, pitch_frames=normalized)

    def _name(self, index: int) -> str:
        entry = self._entries[index]
        return f"{next(iter(entry.fields.values()))} ({entry.where})"

    def collate(self, items: list[FastPitchUtterance]) -> FastPitchBatch:
        """Pad utterances, in the order they come, into one batch."""
        token_lengths, mel_lengths = [len(item.tokens) for item in items], [item.mel.size(1) for item in items]
        speakers = [item.speaker for item in items if item.speaker is not None]

        def padded(field: str) -> Tensor | None:
            rows = [getattr(item, field) for item in items]
            return None if rows[0] is None else pad_sequence(rows, batch_first=True)

        return FastPitchBatch(
            names=tuple(item.name for item in items),
            tokens=pad_sequence([item.tokens for item in items], batch_first=True),
            token_lengths=torch.tensor(token_lengths),
            mels=pad_sequence([item.mel.t() for item in items], batch_first=True).transpose(1, 2).contiguous(),
            mel_lengths=torch.tensor(mel_lengths),
            durations=padded("durations"),
            pitch=padded("pitch"),
            pitch_frames=padded("pitch_frames"),
            prior=padded_priors(mel_lengths, token_lengths) if items[0].durations is None else None,
            speakers=torch.tensor(speakers) if speakers else None,
        )


def build_dataset(
    options: TrainingOptions, filelist: Path, *, audio: AudioConfig, text: TextConfig, training: bool
) -> FastPitchDataset:
    """The dataset of a filelist; the training list is parsed already."""
    learned = options.architecture.learned_alignment
    entries = options.entries if training else read_list(filelist, learned_alignment=learned)
    return FastPitchDataset(
        entries,
        _source(entries, options.dataset_path, audio, cache=options.pitch_cache, method=options.pitch_method),
        text=text,
        n_speakers=options.architecture.n_speakers,
        unknown_symbols=options.unknown_symbols,
        seed=options.seed,
    )


def compute_statistics(
    networks: Mapping[str, FastPitch],
    options: TrainingOptions,
    *,
    training_set: FastPitchDataset,
    validation_set: FastPitchDataset,
    gather: Gather,
) -> None:
    """Measure the pitch statistics that the network lacks over the training list, and normalize both lists by them.

    Lists with durations have normalized pitch. A network with statistics, as that of a resumed training, keeps them.
    """
    if not options.architecture.learned_alignment:
        return
    network = networks["fastpitch"]
    measure_pitch(network, training_set.source, training_set.speakers, gather=gather, n_workers=options.num_workers)
    for dataset in (training_set, validation_set):
        dataset.normalize_pitch_as(network)


def teacher_forced_dataset(
    dataset_path: Path,
    filelist: Path,
    *,
    config: ModelConfig,
    audio: AudioConfig,
    text: TextConfig,
    unknown_symbols: str,
    networks: Mapping[str, FastPitch],
) -> FastPitchDataset:
    """The utterances of a list for ``FastPitch.teacher_forced``; a learned alignment needs no durations.

    Their pitch is normalized by the network's statistics, which are measured over the list if it has none.
    """
    entries = read_list(filelist, learned_alignment=config.learned_alignment and not has_durations(filelist))
    source = _source(entries, dataset_path, audio)
    dataset = FastPitchDataset(
        entries, source, text=text, n_speakers=config.n_speakers, unknown_symbols=unknown_symbols
    )
    if "durations" not in entries[0].fields:
        network = networks["fastpitch"]
        measure_pitch(network, source, dataset.speakers, gather=Ranks().gather_over, n_workers=None)
        dataset.normalize_pitch_as(network)
    return dataset


def _source(
    entries: list[FilelistEntry], folder: Path, audio: AudioConfig, *, cache: Path | None = None, method: str = "praat"
) -> FeatureSource:
    if "wav" not in entries[0].fields:
        return StoredFeatures(folder, entries, audio=audio)
    kept = PitchCache(cache or folder / PITCH_CACHE, audio, method=method)
    return RecordedFeatures(folder, entries, audio=audio, cache=kept)
