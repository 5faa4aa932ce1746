"""A text-to-mel model's own mels of a corpus, teacher-forced, to fine-tune a vocoder on.

The lists are those that `train.py` reads for the model: FastPitch's durations and pitch come from there, and Tacotron 2
reads each true frame before it makes the next one, so that each mel lies frame by frame on its recording. The mel of
``mels/anna/1.pt`` or ``wavs/anna/1.wav`` is written to ``<output>/anna/1.pt``, and what all of them are to
``<output>/audio.json``.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from signal import Signals
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from common.audio.mel import MelExtractor
from common.audio.wav import check_wav
from common.checkpoints.loading import LoadedCheckpoint, load_networks
from common.config import AudioConfig, to_plain
from common.data.batch import Dataset, ErrorsAsItems
from common.errors import InputError
from common.extraction.features import read_complete, write_feature
from common.files import read_json, sha256, write_json
from common.precision import Precision
from common.progress import Progress, progress
from common.registry import GeneratorSpec
from common.signals import StopSignals

SETTINGS, GENERATOR = "audio.json", "generator.json"  # stored with the mels: what they are, and which model made them


@dataclass(frozen=True)
class TeacherForcing:
    """The mels to make."""

    dataset_path: Path
    filelists: tuple[Path, ...]
    output: Path
    resume: bool = False
    batch_size: int = 32
    num_workers: int = 0
    unknown_symbols: str = "error"


@dataclass(frozen=True)
class ForcedClip:
    """One line of a list: where its recording and its new mel are."""

    filelist: Path
    index: int  # in the list's dataset
    where: str  # "mels/a.pt (train.txt:7)"
    recording: Path
    n_frames: int  # of the recording, by the model's framing
    output: Path


@dataclass
class ForcingReport:
    """What was made and refused of each list."""

    total: Counter[Path] = field(default_factory=Counter)  # list -> clips
    made: Counter[Path] = field(default_factory=Counter)
    kept: Counter[Path] = field(default_factory=Counter)  # complete already
    refused: list[tuple[str, str]] = field(default_factory=list)  # (clip, reason)
    stopped_by: Signals | None = None

    def __str__(self) -> str:
        width = max(len(str(name)) for name in self.total)
        lines = [f"{'list':<{width}}  {'clips':>6}  {'made':>6}  {'already whole':>13}"]
        lines += [
            f"{name!s:<{width}}  {total:>6}  {self.made[name]:>6}  {self.kept[name]:>13}"
            for name, total in self.total.items()
        ]
        if self.refused:
            lines.append(f"refused: {len(self.refused)} of {self.total.total()} clips")
            lines += [f"  {clip}: {reason}" for clip, reason in self.refused]
        return "\n".join(lines)


def make_teacher_forced_mels(loaded: LoadedCheckpoint, options: TeacherForcing, precision: Precision) -> ForcingReport:
    """Make the mels of all lists, or those before a signal that stops the run.

    Raises:
        InputError: a list cannot be read, two lines would write the same mel, or the folder holds other mels.
    """
    audio, text, inference = loaded.checkpoint.audio, loaded.checkpoint.text, loaded.spec.inference
    assert isinstance(inference, GeneratorSpec) and inference.teacher_forced_dataset is not None
    networks, config = load_networks(loaded.checkpoint, ema=loaded.ema, device=precision.device, where=str(loaded.path))
    network: Any = next(iter(networks.values()))
    network.prepare_for_inference()
    datasets = {
        filelist: inference.teacher_forced_dataset(
            options.dataset_path,
            filelist,
            config=config,
            audio=audio,
            text=text,
            unknown_symbols=options.unknown_symbols,
            networks=networks,
        )
        for filelist in options.filelists
    }
    _prepare_output(options.output, loaded)
    report = ForcingReport()
    clips = _plan(datasets, options, audio, report)
    bar: Progress[None] = progress(total=sum(map(len, clips.values())), desc="mels", unit="clip")
    with StopSignals() as signals, bar:
        for filelist, dataset in datasets.items():
            for n_clips in _make_mels(dataset, clips[filelist], network, options, precision, report):
                bar.update(n_clips)
                if signals.received is not None:
                    report.stopped_by = signals.received
                    return report
    return report


def _prepare_output(folder: Path, loaded: LoadedCheckpoint) -> None:
    """Store with the mels what they are; refuse a folder with those of another or of an unknown model."""
    maker = {"model": loaded.spec.name, "sha256": sha256(loaded.path), "ema": loaded.ema}
    stored = {SETTINGS: to_plain(loaded.checkpoint.audio), GENERATOR: maker}
    is_new = not folder.is_dir() or next(folder.rglob("*.pt"), None) is None
    for name, value in stored.items():
        if is_new:
            try:
                write_json(folder / name, value)
            except OSError as error:
                raise InputError(f"{folder}: cannot write there ({error.strerror}); choose another --output") from error
        elif not (folder / name).is_file() or read_json(folder / name) != value:
            raise InputError(
                f"{folder}: holds mels of another generator or of other weights ({name}); move the folder away, "
                "or choose another --output"
            )


def _plan(
    datasets: dict[Path, Dataset], options: TeacherForcing, audio: AudioConfig, report: ForcingReport
) -> dict[Path, list[ForcedClip]]:
    """The clips of each list that are to be made; those refused or complete already go into ``report``."""
    clips: dict[Path, list[ForcedClip]] = {}
    seen: dict[Path, str] = {}
    extractor = MelExtractor(audio)
    for filelist, dataset in datasets.items():
        clips[filelist] = []
        report.total[filelist] = len(dataset)
        for index, (number, path) in enumerate(_first_column(filelist)):
            where = f"{path} ({filelist}:{number})"
            first, *rest = PurePosixPath(path).parts
            name = Path(*rest) if rest else Path(first)
            output = options.output / name.with_suffix(".pt")
            if output in seen:
                raise InputError(f"{where}: its mel is {output}, as that of {seen[output]}")
            seen[output] = where
            try:
                recording = options.dataset_path / path
                if recording.suffix == ".pt":
                    recording = _find_recording(options.dataset_path / "wavs" / name)
                n_samples = check_wav(recording, sampling_rate=audio.sampling_rate).n_samples
            except InputError as error:
                report.refused.append((where, str(error)))
                continue
            clip = ForcedClip(filelist, index, where, recording, extractor.n_frames(n_samples), output)
            if options.resume and read_complete(output, (audio.n_mels, clip.n_frames)) is not None:
                report.kept[filelist] += 1
            else:
                clips[filelist].append(clip)
    return clips


def _first_column(filelist: Path) -> list[tuple[int, str]]:
    """(line's number, first field) of each line; the dataset has read and checked the same list."""
    lines = filelist.read_text(encoding="utf-8-sig").split("\n")
    return [(number, line.split("|")[0].strip()) for number, line in enumerate(lines, start=1) if line.strip()]


def _find_recording(stem: Path) -> Path:
    for path in (stem.with_suffix(".wav"), stem.with_suffix(".flac")):
        if path.is_file():
            return path
    raise InputError(f"{stem.with_suffix('.wav')}: no such recording")


def _make_mels(
    dataset: Dataset,
    clips: Sequence[ForcedClip],
    network: Any,
    options: TeacherForcing,
    precision: Precision,
    report: ForcingReport,
) -> Iterator[int]:
    """Make and write the mels of one list; after each batch, yield the number of its clips."""
    # The longest first: what does not fit into memory shows at once.
    clips = sorted(clips, key=lambda clip: -dataset.lengths[clip.index])
    batches = [clips[start : start + options.batch_size] for start in range(0, len(clips), options.batch_size)]
    loader: DataLoader = DataLoader(
        ErrorsAsItems(dataset),  # type: ignore[arg-type]  # DataLoader needs no more than its __len__ and __getitem__
        batch_sampler=[[clip.index for clip in batch] for batch in batches],
        collate_fn=list,
        num_workers=options.num_workers,
    )
    for batch, items in zip(batches, loader):
        report.refused += [(clip.where, str(item)) for clip, item in zip(batch, items) if isinstance(item, InputError)]
        good = [(clip, item) for clip, item in zip(batch, items) if not isinstance(item, InputError)]
        if good:
            collated: Any = dataset.collate([item for _, item in good])
            with torch.inference_mode(), precision.autocast():
                output = network.teacher_forced(collated.to(precision.device))
            mels = output.mel.float().cpu()
            for (clip, _), mel, length in zip(good, mels, output.lengths.tolist()):
                _write(clip, mel[:, :length], report)
        yield len(batch)


def _write(clip: ForcedClip, mel: Tensor, report: ForcingReport) -> None:
    """Write a mel that lies on its recording; refuse another."""
    if mel.size(1) != clip.n_frames:
        reason = (
            f"{mel.size(1)} frames, but {clip.recording} has {clip.n_frames}; were the features made of this "
            "recording, without --trim-silence?"
        )
        report.refused.append((clip.where, reason))
    elif not torch.isfinite(mel).all():
        report.refused.append((clip.where, "the generator's mel is not finite; try --amp-dtype bfloat16, or no --amp"))
    else:
        write_feature(clip.output, mel)
        report.made[clip.filelist] += 1
