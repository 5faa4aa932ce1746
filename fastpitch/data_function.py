"""FastPitch's training data: mels, pitch, text and optional durations of a list."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from common.audio.pitch import statistics
from common.audio.pitch_cache import PitchCache
from common.config import AudioConfig
from common.data.features import check_stored, frames_of_tokens, load_feature, shape_error
from common.data.filelist import FilelistEntry, Filelists
from common.data.loader import batches_of, loader_processes
from common.data.text_mel import TextMelDataset
from common.distributed import Gather, Ranks
from common.errors import InputError
from common.nn.alignment import interpolated_prior
from common.text.config import TextConfig
from common.text.options import TextOptions
from common.torch_file import load_tensor
from fastpitch.aligner import check_alignable
from fastpitch.arg_parser import PITCH_CACHE, TrainingOptions
from fastpitch.config import ModelConfig
from fastpitch.model import FastPitch, FastPitchBatch
from fastpitch.training_list import RECORDINGS_WITH_PITCH, WITH_DURATIONS, columns_of, read_list, speaker_id


class FastPitchDataset(TextMelDataset):
    """Utterances of a list (`fastpitch.training_list`).

    Lists without durations have pitch in Hz: call `normalize_pitch_as` before loading the first utterance. InputError
    as `TextMelDataset`, and for too many symbols, unknown speakers, and durations of randomly drawn symbols.
    """

    def __init__(
        self,
        options: TrainingOptions,
        entries: Sequence[FilelistEntry],
        *,
        audio: AudioConfig,
        text: TextConfig,
        training: bool = False,
    ) -> None:
        folder, model = options.dataset_path, options.architecture
        unknown_symbols = options.text.unknown_symbols
        super().__init__(folder, entries, audio=audio, text=text, unknown_symbols=unknown_symbols, seed=options.seed)
        self.has_durations = "durations" in entries[0].fields
        cache = options.pitch_cache or folder / PITCH_CACHE
        self._cache = PitchCache(cache, audio, options.pitch_method, options.pitch_range)
        self._window_seed = options.seed if training and model.adversarial else None
        self._pitch_mean = self._pitch_std = torch.zeros(0)  # Hz; of all speakers, or of each
        self.speakers = [speaker_id(entry, names=text.speakers, n_speakers=model.n_speakers) for entry in entries]
        if self.has_durations and self.transcripts.mixes:
            raise InputError(f"--p-arpabet {text.p_arpabet}: durations belong to fixed symbols; give 0 or 1")
        if self.recorded:  # the number of frames is known without reading them
            for index, n_frames in enumerate(self.lengths):
                check_alignable(n_frames, len(self.transcripts[index]), where=self.name(index))
        if not self.has_durations and "pitch" in entries[0].fields:
            check_stored(folder, entries, column="pitch", audio=audio)

    def normalize_pitch_as(self, network: FastPitch) -> None:
        """Normalize the pitch of frames with a network's statistics."""
        self._pitch_mean, self._pitch_std = network.pitch_mean.cpu().clone(), network.pitch_std.cpu().clone()

    def utterance(self, index: int, tokens: Tensor) -> FastPitchBatch:
        """The utterance with ``tokens``, (L,) or (L, n_features), as a batch."""
        mel, pitch = self.mel_and_pitch(index)
        entry, speaker = self.entries[index], self.speakers[index]
        speakers = None if speaker is None else torch.tensor([speaker])
        batch = partial(
            FastPitchBatch.of_one, self.name(index), tokens, mel, text=entry.fields["text"], speakers=speakers
        )
        if self.has_durations:
            file, source = (entry.fields[column] for column in ("durations", "mel"))
            stored = load_tensor(self.folder / file, where=entry.where)
            durations = frames_of_tokens(stored, mel.size(1), name=file, frames_of=source, where=entry.where)
            for column, values in (("durations", durations), ("pitch", pitch)):
                if values.shape != tokens.shape[:1]:
                    wanted = f"({len(tokens)},), one value a symbol of the text"
                    wanted += "; durations of TextGrids need the list of --output-meta-file, with --input-type phone"
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
        """The pitch of utterances, as `mel_and_pitch` returns it."""
        return [self.mel_and_pitch(index)[1].double().numpy() for index in indices]

    def mel_and_pitch(self, index: int) -> tuple[Tensor, Tensor]:
        """Mel (n_mels, F), and pitch: with durations (L,) normalized, else (F,) Hz, 0 where unvoiced."""
        entry = self.entries[index]
        if "pitch" not in entry.fields:
            wave = self.load_wave(index)
            mel = self.load_mel(index, wave)
            return mel, self._cache.pitch(wave, n_frames=mel.size(1), where=f"{entry.fields['wav']}, {entry.where}")
        mel, pitch = self.load_mel(index), load_feature(self.folder, entry, "pitch")
        if self.has_durations:
            return mel, pitch
        pitch = pitch.squeeze()  # the original's are (1, F)
        if pitch.shape != mel.shape[1:]:
            source = entry.fields["wav" if self.recorded else "mel"]
            raise shape_error(entry, "pitch", pitch, wanted=f"({mel.size(1)},), the frames of {source}")
        return mel, pitch


def build_dataset(
    options: TrainingOptions, filelists: Filelists, *, audio: AudioConfig, text: TextConfig, training: bool
) -> FastPitchDataset:
    """The dataset of filelists."""
    learned = options.architecture.learned_alignment
    entries = read_list(options.dataset_path, filelists, learned_alignment=learned)
    if options.load_pitch_from_disk and "pitch" not in entries[0].fields:
        raise InputError(f"{entries[0].where}: --load-pitch-from-disk expects {'|'.join(RECORDINGS_WITH_PITCH)}")
    return FastPitchDataset(options, entries, audio=audio, text=text, training=training)


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
    """The utterances of a list for `FastPitch.teacher_forced`; missing pitch statistics are measured over it."""
    learned = config.learned_alignment and columns_of(filelist) != WITH_DURATIONS
    entries = read_list(dataset_path, filelist, learned_alignment=learned)
    reading = TextOptions(unknown_symbols=unknown_symbols)
    options = TrainingOptions(text=reading, architecture=config, dataset_path=dataset_path)
    dataset = FastPitchDataset(options, entries, audio=audio, text=text)
    if not dataset.has_durations:
        network = networks["fastpitch"]
        measure_pitch(network, dataset, gather=Ranks().gather_over, n_workers=0)
        dataset.normalize_pitch_as(network)
    return dataset


def measure_pitch(network: FastPitch, source: FastPitchDataset, *, gather: Gather, n_workers: int) -> None:
    """Measure the unknown statistics (a deviation of 0); a speaker without voiced pitch gets those of all."""
    if (network.pitch_std > 0).all():
        return

    def compute(indices: Sequence[int]) -> Iterator[np.ndarray]:
        numbers: Any = range(len(source))
        loader = DataLoader(numbers, 16, sampler=indices, collate_fn=source.pitches, **loader_processes(n_workers))
        for chunk in batches_of(loader):
            yield from chunk

    measured = gather(len(source.speakers), compute, "measuring pitch")
    overall = statistics(measured)
    for speaker in (network.pitch_std <= 0).nonzero().flatten().tolist():
        own = [pitch for pitch, of_speaker in zip(measured, source.speakers) if of_speaker == speaker and pitch.any()]
        found = statistics(own) if own and len(network.pitch_std) > 1 else overall
        network.pitch_mean[speaker] = found.mean
        network.pitch_std[speaker] = found.std
