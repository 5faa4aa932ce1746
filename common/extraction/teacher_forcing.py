"""Makes a corpus's mels with a teacher-forced text-to-mel model, to fine-tune a vocoder on.

The lists are those that `train.py` reads for the model. FastPitch takes durations and pitch from them, and Tacotron 2
reads each true frame before it predicts the next one, so each mel matches its recording frame by frame. The mel of
``mels/anna/1.pt`` or ``wavs/anna/1.wav`` is written to ``<output>/anna/1.pt``, and the settings of all mels to
``<output>/audio.json``.
"""

import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import ConcatDataset

from common.audio.mel import MelExtractor
from common.audio.options import SETTINGS
from common.audio.wav import check_wav
from common.checkpoints.loading import LoadedCheckpoint, load_networks
from common.config import AudioConfig, to_plain
from common.data.features import feature_name
from common.errors import InputError, OptionError
from common.extraction.batches import read_in_batches
from common.extraction.corpus import Report, check_settings
from common.extraction.features import read_complete, write_feature
from common.extraction.options import TeacherForcingOptions
from common.files import sha256, write_json, writing
from common.precision import Precision
from common.progress import progress
from common.signals import StopSignals

GENERATOR = "generator.json"  # stored with the mels: which model made them


@dataclass(frozen=True)
class ForcedClip:
    """One line of a list: where its recording and its new mel are."""

    index: int  # over all lists
    where: str  # "mels/a.pt (train.txt:7)"
    recording: Path
    n_frames: int  # of the recording, by the model's framing
    output: Path


def make_teacher_forced_mels(loaded: LoadedCheckpoint, options: TeacherForcingOptions, precision: Precision) -> Report:
    """Make the mels of all lists, until a signal stops the run.

    Raises InputError for a bad list, two lines that would write the same mel, or a folder with other mels.
    """
    audio, text = loaded.checkpoint.audio, loaded.checkpoint.text
    if (open_dataset := loaded.spec.find("data_function", "teacher_forced_dataset")) is None:
        raise OptionError(f"{loaded.path}: {loaded.spec.name} has no teacher forcing")
    assert text is not None and options.output is not None
    networks, config = load_networks(loaded.checkpoint, ema=loaded.ema, device=precision.device, where=str(loaded.path))
    network: Any = next(iter(networks.values()))
    network.prepare_for_inference()
    open_list = functools.partial(
        open_dataset, config=config, audio=audio, text=text, unknown_symbols=options.unknown_symbols, networks=networks
    )
    filelists = options.filelist or _named_lists(options.lists or Path(), config.list_columns, loaded.path)
    datasets = [open_list(options.dataset_path, filelist) for filelist in filelists]
    maker = {"model": loaded.spec.name, "sha256": sha256(loaded.path), "ema": loaded.ema}
    settings = {SETTINGS: to_plain(audio), GENERATOR: maker}
    check_settings(options.output, settings)
    with writing(options.output, "; choose another --output"):
        for name, values in settings.items():
            write_json(options.output / name, values)
    report = Report()
    clips = _plan(datasets, options.output, options, audio, report)
    bar = progress(total=len(clips), desc="mels", unit="clip")
    with StopSignals() as signals, bar:
        for n_clips in _make_mels(datasets, clips, network, options, precision, report):
            bar.update(n_clips)
            if signals.received is not None:
                report.stopped_by = signals.received
                break
    return report


def _named_lists(prefix: Path, columns: str, checkpoint: Path) -> list[Path]:
    """Return the training list of that name with the model's columns, and the other splits' lists that exist."""
    splits = ("train", "val", "test")
    train, *others = (prefix.with_name(f"{prefix.name}_{columns}_{split}_filelist.txt") for split in splits)
    if not train.is_file():
        raise InputError(f"{train}: no such list, which {checkpoint} needs; run scripts/prepare_dataset.sh")
    return [train, *(path for path in others if path.is_file())]


def _plan(
    datasets: Sequence[Any], output: Path, options: TeacherForcingOptions, audio: AudioConfig, report: Report
) -> list[ForcedClip]:
    """Return the clips to make; those refused or already complete go into ``report``."""
    clips = []
    seen: dict[Path, str] = {}
    extractor = MelExtractor(audio)
    for index, entry in enumerate(itertools.chain.from_iterable(dataset.entries for dataset in datasets)):
        path = next(iter(entry.fields.values()))
        name, where = feature_name(path), f"{path} ({entry.where})"
        report.n_utterances += 1
        mel = output / f"{name}.pt"
        if seen.setdefault(mel, where) != where:
            raise InputError(f"{where}: its mel would be {mel}, like that of {seen[mel]}")
        recording = options.dataset_path / path
        if recording.suffix == ".pt":
            paths = [options.dataset_path / "wavs" / f"{name}{suffix}" for suffix in (".wav", ".flac")]
            recording = next(filter(Path.is_file, paths), paths[0])
        try:
            n_samples = check_wav(recording, sampling_rate=audio.sampling_rate).n_samples
        except InputError as error:
            report.refused.append((where, str(error)))
            continue
        report.speech_seconds += n_samples / audio.sampling_rate
        clip = ForcedClip(index, where, recording, extractor.n_frames(n_samples), mel)
        if options.resume and read_complete(mel, (audio.n_mels, clip.n_frames)) is not None:
            report.kept[str(output)] += 1
        else:
            clips.append(clip)
    return clips


def _make_mels(
    datasets: Sequence[Any],
    clips: Sequence[ForcedClip],
    network: Any,
    options: TeacherForcingOptions,
    precision: Precision,
    report: Report,
) -> Iterator[int]:
    """Make and write the mels; after each batch, yield the number of its clips."""
    # The longest come first, so that running out of memory shows at once.
    lengths = [length for dataset in datasets for length in dataset.lengths]
    clips = sorted(clips, key=lambda clip: -lengths[clip.index])
    batches = [clips[start : start + options.batch_size] for start in range(0, len(clips), options.batch_size)]
    n_workers = 4 * options.computing.cuda if options.num_workers is None else options.num_workers
    indices = [[clip.index for clip in batch] for batch in batches]
    loaded = read_in_batches(ConcatDataset(datasets).__getitem__, range(len(lengths)), indices, n_workers=n_workers)
    for batch, items in zip(batches, loaded):
        report.refused += [(clip.where, str(item)) for clip, item in zip(batch, items) if isinstance(item, InputError)]
        good = [(clip, item) for clip, item in zip(batch, items) if not isinstance(item, InputError)]
        if good:
            collated: Any = datasets[0].collate([item for _, item in good])
            with torch.inference_mode(), precision.autocast():
                output = network.teacher_forced(collated.to(precision.device))
            mels = output.mel.float().cpu()
            for (clip, _), mel, length in zip(good, mels, output.lengths.tolist()):
                if length != clip.n_frames:
                    problem = f"{length} frames, but {clip.recording} has {clip.n_frames}; was --trim-silence used?"
                    report.refused.append((clip.where, problem))
                elif not torch.isfinite(mel[:, :length]).all():
                    problem = "the generator's mel is not finite; try --amp-dtype bfloat16, or no --amp"
                    report.refused.append((clip.where, problem))
                else:
                    write_feature(clip.output, mel[:, :length])
                    report.made[str(options.output)] += 1
        yield len(batch)
