"""FastPitch's training data: lists, and their mels, pitch, text, speakers and optional durations."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from common.audio.pitch import statistics
from common.audio.pitch_cache import PitchCache
from common.data.features import check_stored, feature_name, frames_of_tokens, load_feature, shape_error
from common.data.filelist import SPEAKER_NUMBER, FilelistEntry, Filelists, first_fields, paths_of, read_filelist
from common.data.loader import batches_of, loader_processes
from common.data.text_mel import TextMelDataset
from common.distributed import Gather, Ranks
from common.errors import InputError, shown
from common.files import read_text
from common.nn.alignment import interpolated_prior
from common.text.config import TextConfig
from common.text.options import TextOptions
from common.text.symbols import canonical_phone, get_symbol_table
from common.text.teacher import TEACHER
from common.torch_file import load_tensor
from fastpitch.aligner import check_alignable
from fastpitch.arg_parser import PITCH_CACHE, TrainingOptions
from fastpitch.config import ModelConfig
from fastpitch.model import FastPitch, FastPitchBatch

WITH_DURATIONS = ("mel", "durations", "pitch", "text")
FEATURES = ("mel", "pitch", "text")  # pitch of each frame, Hz
RECORDINGS = ("wav", "text")
RECORDINGS_WITH_PITCH = ("wav", "pitch", "text")
_LEARNED = (RECORDINGS, RECORDINGS_WITH_PITCH, FEATURES)  # with a learned alignment
FOLDERS = {"mel": "mels", "durations": "durations", "pitch": "pitch_char"}  # where extract_mels.py writes a column


class FastPitchDataset(TextMelDataset):
    """The utterances of a list that `read_list` read.

    Lists without durations have pitch in Hz: call `normalize_pitch_as` before loading the first utterance. Raises
    InputError like `TextMelDataset`, and for too many symbols, unknown speakers, or durations of random symbols.
    """

    def __init__(
        self, options: TrainingOptions, entries: Sequence[FilelistEntry], *, training: bool = False, **known: Any
    ) -> None:
        """``known`` holds the audio and text configurations."""
        folder, model = options.dataset_path, options.architecture
        super().__init__(folder, entries, unknown_symbols=options.text.unknown_symbols, seed=options.seed, **known)
        audio, text = self.extractor.config, self.text
        self.has_durations = "durations" in entries[0].fields
        cache = options.pitch_cache or folder / PITCH_CACHE
        self._cache = PitchCache(cache, audio, options.pitch_method, options.pitch_range)
        self._window_seed = options.seed if training and model.adversarial else None
        self._pitch_mean = self._pitch_std = torch.zeros(0)  # Hz; one value for all speakers, or one each
        self.speakers = [speaker_id(entry, names=text.speakers, n_speakers=model.n_speakers) for entry in entries]
        if self.has_durations and self.transcripts.mixes:
            raise InputError(f"--p-arpabet {text.p_arpabet}: durations belong to fixed symbols; give 0 or 1")
        if self.recorded:  # the number of frames is known without reading the files
            for index, n_frames in enumerate(self.lengths):
                check_alignable(n_frames, len(self.transcripts[index]), where=self.name(index))
        if not self.has_durations and "pitch" in entries[0].fields:
            check_stored(folder, entries, column="pitch", audio=audio)

    def normalize_pitch_as(self, network: FastPitch) -> None:
        """Normalize frame-level pitch with a network's statistics."""
        self._pitch_mean, self._pitch_std = network.pitch_mean.cpu().clone(), network.pitch_std.cpu().clone()

    def utterance(self, index: int, tokens: Tensor) -> FastPitchBatch:
        """Return the utterance with ``tokens``, (L,) or (L, n_features), as a batch."""
        mel, pitch = self.mel_and_pitch(index)
        entry, speaker = self.entries[index], self.speakers[index]
        row: dict[str, Any] = {"speakers": None if speaker is None else torch.tensor([speaker])}
        row["text"] = entry.fields["text"]
        batch = partial(FastPitchBatch.of_one, self.name(index), tokens, mel, **row)
        if self.has_durations:
            file, source = (entry.fields[column] for column in ("durations", "mel"))
            stored = load_tensor(self.folder / file, where=entry.where)
            durations = frames_of_tokens(stored, mel.size(1), name=file, frames_of=source, where=entry.where)
            for column, values in (("durations", durations), ("pitch", pitch)):
                if values.shape != tokens.shape[:1]:
                    wanted = f"({len(tokens)},), one value per symbol of the text"
                    wanted += "; durations from TextGrids need the list from --output-meta-file and --input-type phone"
                    raise shape_error(entry, column, values, wanted=wanted)
            return batch(durations=durations[None], pitch=pitch[None])
        size = mel.size(1), len(tokens)
        check_alignable(*size, where=self.name(index))
        which = 0 if speaker is None or len(self._pitch_mean) == 1 else speaker
        normalized = (pitch - self._pitch_mean[which]).div(self._pitch_std[which]).masked_fill(pitch == 0, 0.0)
        return batch(pitch_frames=normalized[None], prior=interpolated_prior(*size).float()[None])

    def draw(self, index: int, *, epoch: int) -> FastPitchBatch:
        drawn: FastPitchBatch = super().draw(index, epoch=epoch)
        if self._window_seed is None:
            return drawn
        place = np.random.default_rng((self._window_seed, epoch, index, 2)).random(dtype=np.float32)
        return replace(drawn, window=torch.tensor([float(place)]))

    def pitches(self, indices: Sequence[int]) -> list[np.ndarray]:
        """Return the pitch of each utterance, as in `mel_and_pitch`."""
        return [self.mel_and_pitch(index)[1].double().numpy() for index in indices]

    def mel_and_pitch(self, index: int) -> tuple[Tensor, Tensor]:
        """Return mel (n_mels, F) and pitch: normalized (L,) with durations, else (F,) in Hz, 0 where unvoiced."""
        entry = self.entries[index]
        if "pitch" not in entry.fields:
            wave = self.load_wave(index)
            mel = self.load_mel(index, wave)
            return mel, self._cache.pitch(wave, n_frames=mel.size(1), where=f"{entry.fields['wav']}, {entry.where}")
        mel, pitch = self.load_mel(index), load_feature(self.folder, entry, "pitch")
        if self.has_durations:
            return mel, pitch
        pitch = pitch.squeeze()  # the original stores (1, F)
        if pitch.shape != mel.shape[1:]:
            source = entry.fields["wav" if self.recorded else "mel"]
            raise shape_error(entry, "pitch", pitch, wanted=f"({mel.size(1)},), the frames of {source}")
        return mel, pitch


def build_dataset(options: TrainingOptions, filelists: Filelists, *, training: bool, **known: Any) -> FastPitchDataset:
    """Build the dataset of ``filelists``."""
    learned = options.architecture.learned_alignment
    entries = read_list(options.dataset_path, filelists, learned_alignment=learned)
    if options.load_pitch_from_disk and "pitch" not in entries[0].fields:
        raise InputError(f"{entries[0].where}: --load-pitch-from-disk expects {'|'.join(RECORDINGS_WITH_PITCH)}")
    return FastPitchDataset(options, entries, training=training, **known)


def teacher_forced_dataset(
    dataset_path: Path, filelist: Path, *, config: ModelConfig, unknown_symbols: str, networks: Mapping, **known: Any
) -> FastPitchDataset:
    """Build the dataset of a list for `FastPitch.teacher_forced`, and measure missing pitch statistics over it."""
    learned = config.learned_alignment and columns_of(filelist) != WITH_DURATIONS
    entries = read_list(dataset_path, filelist, learned_alignment=learned)
    reading = TextOptions(unknown_symbols=unknown_symbols)
    options = TrainingOptions(text=reading, architecture=config, dataset_path=dataset_path)
    dataset = FastPitchDataset(options, entries, **known)
    if not dataset.has_durations:
        measure_pitch(networks["fastpitch"], dataset, gather=Ranks().gather_over, n_workers=0)
        dataset.normalize_pitch_as(networks["fastpitch"])
    return dataset


def measure_pitch(network: FastPitch, source: FastPitchDataset, *, gather: Gather, n_workers: int) -> None:
    """Measure unknown statistics (those with a std of 0); a speaker without voiced frames gets the overall ones."""
    if (network.pitch_std > 0).all():
        return

    def compute(indices: Sequence[int]) -> Iterator[np.ndarray]:
        numbers: Any = range(len(source))
        loader = DataLoader(numbers, 16, sampler=indices, collate_fn=source.pitches, **loader_processes(n_workers))
        return chain.from_iterable(batches_of(loader))

    measured = gather(len(source.speakers), compute, "measuring pitch")
    overall = statistics(measured)
    for speaker in (network.pitch_std <= 0).nonzero().flatten().tolist():
        own = [pitch for pitch, of_speaker in zip(measured, source.speakers) if of_speaker == speaker and pitch.any()]
        found = statistics(own) if own and len(network.pitch_std) > 1 else overall
        network.pitch_mean[speaker] = found.mean
        network.pitch_std[speaker] = found.std


def read_list(dataset_path: Path, filelists: Filelists, *, learned_alignment: bool) -> list[FilelistEntry]:
    """Read lists that have the same columns.

    If durations are needed, recordings are replaced by their features in the dataset's folder. Raises InputError if
    lists are malformed, have different columns, don't suit ``learned_alignment``, or lack features.
    """
    entries: list[FilelistEntry] = []
    for path in paths_of(filelists):
        columns, fitting = columns_of(path), _LEARNED if learned_alignment else (WITH_DURATIONS, RECORDINGS)
        if columns not in fitting:
            wanted = " or ".join(map("|".join, fitting))
            wanted += "" if learned_alignment else "; without durations, add --learned-alignment"
            raise InputError(f"{path}: has the columns {'|'.join(columns)}, expected {wanted}")
        more = read_filelist(path, columns=columns, optional=("speaker",))
        if columns == RECORDINGS and not learned_alignment:
            more = [_with_features(entry, dataset_path) for entry in more]
        if entries and [*more[0].fields] != [*entries[0].fields]:
            kinds = ["|".join(entry.fields) for entry in (more[0], entries[0])]
            raise InputError(f"{more[0].where}: {kinds[0]}, but {entries[0].where} has {kinds[1]}; expected the same")
        entries += more
    return entries


def columns_of(filelist: Path) -> tuple[str, ...]:
    """Return a list's columns except the speaker's, judging by its first line."""
    fields = first_fields(filelist)[:3]
    n_features = sum(field.endswith(".pt") for field in fields)
    if not fields[0].endswith(".pt"):
        return RECORDINGS_WITH_PITCH if n_features else RECORDINGS
    return WITH_DURATIONS if n_features == 3 else FEATURES


def _with_features(entry: FilelistEntry, dataset_path: Path) -> FilelistEntry:
    """Replace a recording by its features, and the text by the phones of its TextGrid if the durations come from it."""
    words = dict(entry.fields)
    wav = words.pop("wav")
    paths = {column: f"{folder}/{feature_name(wav)}.pt" for column, folder in FOLDERS.items()}
    if missing := [path for path in paths.values() if not (dataset_path / path).is_file()]:
        advice = "make them with extract_mels.py --extract-mels --extract-durations --extract-pitch-char"
        advice += ", or add --learned-alignment"
        raise InputError(f"{entry.where}: {wav} has no {', '.join(missing)} in {dataset_path}; {advice}")
    durations = dataset_path / paths["durations"]
    if (phones := durations.with_suffix(".txt")).is_file() and not durations.with_name(TEACHER).is_file():
        words["text"] = read_text(phones)
    return FilelistEntry(paths | words, entry.where)


def with_labels(text: TextConfig, entries: Sequence[FilelistEntry], dataset_path: Path) -> TextConfig:
    """Add an aligner's labels that the symbol set lacks, such as "tʃ", unless the durations are per letter."""
    if text.of_transcripts.g2p is not None:
        return text
    table = get_symbol_table(text.symbol_set, text.labels)
    new: set[str] = set()
    for entry in entries:
        phones = canonical_phone(entry.fields["text"]).split()
        unknown = {phone for phone in phones if phone not in table}
        if unknown and not new:
            durations = load_tensor(dataset_path / entry.fields["durations"], where=entry.where)
            if len(durations) != len(phones):
                return text
        new |= unknown
    return replace(text, labels=(*text.labels, *sorted(new)))


def speaker_names(entries: Sequence[FilelistEntry], n_speakers: int | None, *, known: Sequence[str]) -> tuple[str, ...]:
    """Return a training list's speaker names in order of ids; empty if lines have no speaker, or numbers that are ids.

    With ``n_speakers``, numbers are ids, and 1 ignores the column. The initial voice's ``known`` names come first.
    Raises InputError if there are more than ``n_speakers``.
    """
    values = {entry.fields["speaker"] for entry in entries if "speaker" in entry.fields}
    if n_speakers is not None and not known and (n_speakers == 1 or all(map(SPEAKER_NUMBER.fullmatch, values))):
        return ()
    new = sorted(values - set(known), key=lambda one: (int(one) if SPEAKER_NUMBER.fullmatch(one) else math.inf, one))
    names = (*known, *new)
    if n_speakers is not None and len(names) > n_speakers:
        raise InputError(f"--n-speakers {n_speakers}: there are {len(names)} speakers {shown(names)}; leave it out")
    return names


def speaker_id(entry: FilelistEntry, *, names: Sequence[str], n_speakers: int) -> int | None:
    """Return a line's speaker id, None for a single-speaker model; raises InputError if it's missing or unknown."""
    value = entry.fields.get("speaker")
    if n_speakers == 1 and (not names or value is None):
        return None
    if value is None:
        raise InputError(f"{entry.where}: no speaker column; expected {'|'.join(entry.fields)}|speaker")
    if value in names:
        return names.index(value) if n_speakers > 1 else None
    if names:
        raise InputError(f"{entry.where}: speaker {value!r}, expected one of {shown(names)}")
    if not SPEAKER_NUMBER.fullmatch(value) or int(value) >= n_speakers:
        raise InputError(f"{entry.where}: speaker {value!r}, expected a number from 0 to {n_speakers - 1}")
    return int(value)
