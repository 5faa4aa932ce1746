"""FastPitch's training data: mels, pitch, text and maybe durations of a list, and batches of them."""

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
from common.checkpoints.checkpoint import Checkpoint
from common.config import AudioConfig
from common.data.features import check_stored, feature_name, frames_of_tokens, load_feature, load_fractions, shape_error
from common.data.filelist import FilelistEntry, Filelists
from common.data.loader import batches_of, loader_processes
from common.data.text_mel import TextMelDataset
from common.distributed import Gather, Ranks
from common.errors import InputError, shown
from common.nn.alignment import interpolated_prior
from common.text.config import TextConfig
from common.torch_file import load_tensor
from fastpitch.aligner import check_alignable
from fastpitch.arg_parser import PITCH_CACHE, TrainingOptions
from fastpitch.config import ModelConfig
from fastpitch.initial_voice import InitialVoice, voice_of
from fastpitch.loss_function import sums_of_errors
from fastpitch.model import FastPitch, FastPitchBatch
from fastpitch.training_list import RECORDINGS_WITH_PITCH, WITH_DURATIONS, columns_of, read_list, speaker_id


class FastPitchDataset(TextMelDataset):
    """Utterances of a list (`fastpitch.training_list`), with a speaker in the last column for a model of several
    speakers: a name of ``text.speakers``, or a number where that names none.

    Lists without durations have pitch in Hz: `normalize_pitch_as` comes before the first utterance is loaded. That of
    recordings without such a column is computed by ``pitch_method`` and kept in ``pitch_cache`` (None: in the dataset's
    folder). ``priors`` is a folder of alignments' priors (None: they are computed); with ``windows``, `draw` also says
    where a discriminator looks; ``options`` are those of `TextMelDataset`.

    Raises:
        InputError: as `TextMelDataset`; or a transcript has more symbols than its recording has frames, a speaker is
            unknown, or durations belong to symbols that ``text`` draws in each epoch.
    """

    def __init__(
        self,
        folder: Path,
        entries: Sequence[FilelistEntry],
        *,
        n_speakers: int,
        pitch_method: str = "praat",
        pitch_range: tuple[float | None, float | None] = (None, None),
        pitch_cache: Path | None = None,
        priors: Path | None = None,
        windows: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(folder, entries, **options)
        audio, text = self.extractor.config, self.text
        self.has_durations = "durations" in entries[0].fields
        self._cache = PitchCache(pitch_cache or folder / PITCH_CACHE, audio, pitch_method, pitch_range)
        self._priors = priors
        self._window_seed = options.get("seed", 0) if windows else None
        self._pitch_mean = self._pitch_std = torch.zeros(0)  # Hz; of all speakers, or of each
        self.speakers = [speaker_id(entry, names=text.speakers, n_speakers=n_speakers) for entry in entries]
        if self.has_durations and self.transcripts.mixes:
            raise InputError(f"--p-arpabet {text.p_arpabet}: durations belong to fixed symbols; give 0 or 1")
        if self.recorded:  # whose frames are known without reading them
            for index, n_frames in enumerate(self.lengths):
                check_alignable(n_frames, len(self.transcripts[index]), where=self.name(index))
        if not self.has_durations and "pitch" in entries[0].fields:
            check_stored(folder, entries, column="pitch", audio=audio)

    def normalize_pitch_as(self, network: FastPitch) -> None:
        """Normalize the pitch of frames by a network's statistics."""
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
        return batch(pitch_frames=normalized[None], prior=self._prior(index, size)[None])

    def draw(self, index: int, *, epoch: int) -> FastPitchBatch:
        drawn: FastPitchBatch = super().draw(index, epoch=epoch)
        if self._window_seed is None:
            return drawn
        place = np.random.default_rng((self._window_seed, epoch, index, 2)).random(dtype=np.float32)
        return replace(drawn, window=torch.tensor([float(place)]))

    def _prior(self, index: int, size: tuple[int, int]) -> Tensor:
        """The prior (F, L) of an utterance, computed or stored; raises InputError where that is missing or of another
        size.
        """
        if self._priors is None:
            return interpolated_prior(*size).float()
        entry = self.entries[index]
        path = self._priors / f"{feature_name(entry.fields['wav' if self.recorded else 'mel'])}.pt"
        prior = load_fractions(path, where=entry.where)
        if prior.shape != size:
            raise InputError(f"{path}: shape {tuple(prior.shape)}, expected {size}, frames and symbols ({entry.where})")
        return prior

    def mel_and_pitch(self, index: int) -> tuple[Tensor, Tensor]:
        """Mel (n_mels, F), and pitch: with durations (L,) normalized, else (F,) Hz, 0 where unvoiced; raises InputError
        where they are missing or broken.
        """
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
    return FastPitchDataset(
        options.dataset_path,
        entries,
        audio=audio,
        text=text,
        n_speakers=options.architecture.n_speakers,
        unknown_symbols=options.text.unknown_symbols,
        seed=options.seed,
        pitch_method=options.pitch_method,
        pitch_range=options.pitch_range,
        pitch_cache=options.pitch_cache,
        priors=options.alignment_priors,
        windows=training and options.architecture.adversarial,
    )


def compute_statistics(
    networks: Mapping[str, FastPitch],
    options: TrainingOptions,
    *,
    training_set: FastPitchDataset,
    validation_set: FastPitchDataset,
    gather: Gather,
    initial: tuple[Path, Checkpoint] | None = None,
    new: bool = True,
) -> list[str]:
    """Measure the pitch statistics that the network lacks over the training list, and normalize both lists by them.

    Lists with durations have normalized pitch. A network with statistics, as that of a resumed training, keeps them.
    A ``new`` network's output layer starts from the mean mel where the options say so, and its new speakers from those
    of the voice to start from, if any; returns lines on these.
    """
    network = networks["fastpitch"]
    if options.mean_mel_bias and new:
        start_from_mean_mel(network, training_set)
    if options.architecture.learned_alignment:
        measure_pitch(network, training_set, gather=gather, n_workers=options.num_workers)
        for dataset in (training_set, validation_set):
            dataset.normalize_pitch_as(network)
    return start_from_nearest(network, voice_of(*initial), training_set) if new and initial is not None else []


@torch.no_grad()
def start_from_mean_mel(network: FastPitch, dataset: FastPitchDataset) -> None:
    """Set the bias of the output layer to the mean over the frames of utterances from all over the list.

    From around 0 the network takes its first hundred updates to come down to the level of log magnitudes.
    """
    step = max(1, len(dataset) // _MEAN_MEL_UTTERANCES)
    mels = [dataset.load_mel(index) for index in range(0, len(dataset), step)]
    network.proj.bias.copy_(torch.cat(mels, dim=1).mean(dim=1))


@torch.no_grad()
def start_from_nearest(network: FastPitch, voice: InitialVoice, dataset: FastPitchDataset) -> list[str]:
    """Give each new speaker of a training list the vector of the voice's speaker who fits their clips best.

    That is whose mel loss is the least under teacher forcing. A voice of one speaker leaves no choice, and one without
    an aligner no teacher forcing. Returns lines that say who was chosen.
    """
    names, table = dataset.text.speakers, network.speaker_emb
    known = [place for place, name in enumerate(names) if name in voice.speaker_names]
    is_aligned = dataset.has_durations or voice.config.learned_alignment
    if table is None or voice.config.n_speakers == 1 or not (known and is_aligned):
        return []
    lines = []
    network.eval()
    for new in sorted({place for place in dataset.speakers if place is not None} - {*known}):
        clips = [index for index, speaker in enumerate(dataset.speakers) if speaker == new]
        clips = clips[:: -(-len(clips) // _CLIPS)]
        batch = dataset.collate([dataset.draw(index, epoch=0) for index in clips])
        losses = {}
        for place in known:
            spoken = replace(batch, speakers=torch.full((len(clips),), place))
            losses[place] = float(sums_of_errors(network(spoken), spoken)["mel_loss"] / spoken.mel_lengths.sum())
        best = min(known, key=losses.__getitem__)
        table.weight[new] = table.weight[best]
        lines.append(f"{shown(names[new])} starts from {shown(names[best])}, whose mel loss on the new clips is least")
    network.train()
    return lines


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
    learned = config.learned_alignment and columns_of(filelist) != WITH_DURATIONS
    entries = read_list(dataset_path, filelist, learned_alignment=learned)
    dataset = FastPitchDataset(
        dataset_path, entries, audio=audio, text=text, n_speakers=config.n_speakers, unknown_symbols=unknown_symbols
    )
    if not dataset.has_durations:
        network = networks["fastpitch"]
        measure_pitch(network, dataset, gather=Ranks().gather_over, n_workers=0)
        dataset.normalize_pitch_as(network)
    return dataset


_MEAN_MEL_UTTERANCES = 256  # that a mean mel is taken of, about
_CLIPS = 8  # of a new speaker, by which the known one who fits best is found
_CHUNK = 16  # utterances a task of a worker


class _Pitches:
    """The pitch of each utterance, Hz, for loader processes."""

    def __init__(self, source: FastPitchDataset) -> None:
        self._source = source

    def __getitem__(self, index: int) -> np.ndarray:
        return self._source.mel_and_pitch(index)[1].double().numpy()


def measure_pitch(network: FastPitch, source: FastPitchDataset, *, gather: Gather, n_workers: int) -> None:
    """Fill those of the network's statistics that are not known yet (a deviation of 0) from a list's utterances.

    A speaker without voiced pitch gets the statistics of all. Raises InputError where an utterance cannot be read.
    """
    if (network.pitch_std > 0).all():
        return

    def compute(indices: Sequence[int]) -> Iterator[np.ndarray]:
        pitches: Any = _Pitches(source)
        loader = DataLoader(pitches, _CHUNK, sampler=indices, collate_fn=list, **loader_processes(n_workers))
        for chunk in batches_of(loader):
            yield from chunk

    measured = gather(len(source.speakers), compute, "measuring pitch")
    overall = statistics(measured)
    for speaker in (network.pitch_std <= 0).nonzero().flatten().tolist():
        own = [pitch for pitch, of_speaker in zip(measured, source.speakers) if of_speaker == speaker and pitch.any()]
        found = statistics(own) if own and len(network.pitch_std) > 1 else overall
        network.pitch_mean[speaker] = found.mean
        network.pitch_std[speaker] = found.std
