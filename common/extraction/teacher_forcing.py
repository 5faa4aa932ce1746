"""A text-to-mel model's own mels of a corpus, teacher-forced, to fine-tune a vocoder on.

The lists are those that `train.py` reads for the model: FastPitch's durations and pitch come from there, and Tacotron 2
reads each true frame before it makes the next one, so that each mel lies frame by frame on its recording. The mel of
``mels/anna/1.pt`` or ``wavs/anna/1.wav`` is written to ``<output>/anna/1.pt``, and what all of them are to
``<output>/audio.json``.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import torch
from torch.utils.data import DataLoader

from common.audio import MelExtractor, check_wav
from common.audio.options import SETTINGS
from common.checkpoints import LoadedCheckpoint, load_networks
from common.config import AudioConfig, from_plain, to_plain
from common.data import Dataset, ErrorsAsItems, leave_to_the_parent, loader_processes, read_numbered_lines
from common.errors import InputError
from common.extraction.batches import check_trained
from common.extraction.corpus import Report
from common.extraction.features import read_complete, write_feature
from common.extraction.options import TeacherForcingOptions
from common.files import read_json, sha256, write_json, writing
from common.precision import Precision
from common.progress import Progress, progress
from common.registry import GeneratorSpec
from common.signals import StopSignals

GENERATOR = "generator.json"  # stored with the mels: which model made them


@dataclass(frozen=True)
class ForcedClip:
    """One line of a list: where its recording and its new mel are."""

    filelist: Path
    index: int  # in the list's dataset
    where: str  # "mels/a.pt (train.txt:7)"
    recording: Path
    n_frames: int  # of the recording, by the model's framing
    output: Path


def make_teacher_forced_mels(loaded: LoadedCheckpoint, options: TeacherForcingOptions, precision: Precision) -> Report:
    """Make the mels of all lists, or those before a signal that stops the run.

    Raises:
        InputError: a list cannot be read, two lines would write the same mel, or the folder holds other mels.
    """
    check_trained(loaded, ema=options.ema)
    audio, inference = loaded.checkpoint.audio, loaded.spec.inference
    assert isinstance(inference, GeneratorSpec) and inference.teacher_forced_dataset is not None
    text = loaded.checkpoint.text
    assert text is not None, "a text-to-mel model reads text"
    config = from_plain(loaded.spec.config, loaded.checkpoint.config, where=str(loaded.path))
    filelists = options.filelist or _named_lists(options.lists or Path(), inference.list_columns(config), loaded.path)
    networks, _ = load_networks(loaded.checkpoint, ema=loaded.ema, device=precision.device, where=str(loaded.path))
    network: Any = next(iter(networks.values()))
    network.prepare_for_inference()
    datasets: dict[Path, Dataset] = {
        filelist: inference.teacher_forced_dataset(
            options.dataset_path,
            filelist,
            config=config,
            audio=audio,
            text=text,
            unknown_symbols=options.unknown_symbols,
            networks=networks,
        )
        for filelist in filelists
    }
    assert options.output is not None
    _prepare_output(options.output, loaded)
    totals = Counter({str(filelist): len(dataset) for filelist, dataset in datasets.items()})
    report = Report(n_utterances=totals.total(), totals=totals)
    clips = _plan(filelists, options.output, options, audio, report)
    bar: Progress[None] = progress(total=len(clips), desc="mels", unit="clip")
    with StopSignals() as signals, bar:
        for filelist, dataset in datasets.items():
            own = [clip for clip in clips if clip.filelist == filelist]
            for n_clips in _make_mels(dataset, own, network, options, precision, report):
                bar.update(n_clips)
                if signals.received is not None:
                    report.stopped_by = signals.received
                    return report
    return report


def _named_lists(prefix: Path, columns: str, checkpoint: Path) -> list[Path]:
    """The training list of that name, of what the model is trained on, and the validation list if there is one."""
    train, val = (prefix.with_name(f"{prefix.name}_{columns}_{split}_filelist.txt") for split in ("train", "val"))
    if not train.is_file():
        features = " FEATURES=false" if columns == "audio_text" else ""
        raise InputError(
            f"{train}: no such list, which {checkpoint} would be trained on; make it by "
            f"NAME={prefix.name}{features} bash scripts/prepare_dataset.sh, or give --filelist"
        )
    return [train, val] if val.is_file() else [train]


def _prepare_output(folder: Path, loaded: LoadedCheckpoint) -> None:
    """Store with the mels what they are; refuse a folder with those of another or of an unknown model."""
    maker = {"model": loaded.spec.name, "sha256": sha256(loaded.path), "ema": loaded.ema}
    stored = {SETTINGS: to_plain(loaded.checkpoint.audio), GENERATOR: maker}
    is_new = not folder.is_dir() or next(folder.rglob("*.pt"), None) is None
    for name, value in stored.items():
        if is_new:
            with writing(folder, "; choose another --output"):
                write_json(folder / name, value)
        elif not (folder / name).is_file() or read_json(folder / name) != value:
            raise InputError(
                f"{folder}: holds mels of another generator or of other weights ({name}); move the folder away, "
                "or choose another --output"
            )


def _plan(
    filelists: Sequence[Path], output: Path, options: TeacherForcingOptions, audio: AudioConfig, report: Report
) -> list[ForcedClip]:
    """The clips that are to be made; those refused or complete already go into ``report``."""
    clips = []
    seen: dict[Path, str] = {}
    extractor = MelExtractor(audio)
    for filelist in filelists:
        for index, (number, line) in enumerate(read_numbered_lines(filelist, kind="filelist")):
            path = line.split("|")[0].strip()
            where = f"{path} ({filelist}:{number})"
            first, *rest = PurePosixPath(path).parts
            name = Path(*rest) if rest else Path(first)
            mel = output / name.with_suffix(".pt")
            if mel in seen:
                raise InputError(f"{where}: its mel is {mel}, as that of {seen[mel]}")
            seen[mel] = where
            try:
                recording = options.dataset_path / path
                if recording.suffix == ".pt":
                    paths = [options.dataset_path / "wavs" / name.with_suffix(one) for one in (".wav", ".flac")]
                    recording = next(filter(Path.is_file, paths), paths[0])
                n_samples = check_wav(recording, sampling_rate=audio.sampling_rate).n_samples
            except InputError as error:
                report.refused.append((where, str(error)))
                continue
            clip = ForcedClip(filelist, index, where, recording, extractor.n_frames(n_samples), mel)
            if options.resume and read_complete(mel, (audio.n_mels, clip.n_frames)) is not None:
                report.kept[str(filelist)] += 1
            else:
                clips.append(clip)
    return clips


def _make_mels(
    dataset: Dataset,
    clips: Sequence[ForcedClip],
    network: Any,
    options: TeacherForcingOptions,
    precision: Precision,
    report: Report,
) -> Iterator[int]:
    """Make and write the mels of one list; after each batch, yield the number of its clips."""
    # The longest first: what does not fit into memory shows at once.
    clips = sorted(clips, key=lambda clip: -dataset.lengths[clip.index])
    batches = [clips[start : start + options.batch_size] for start in range(0, len(clips), options.batch_size)]
    loader: DataLoader = DataLoader(
        ErrorsAsItems(dataset),  # type: ignore[arg-type]  # DataLoader needs no more than its __len__ and __getitem__
        batch_sampler=[[clip.index for clip in batch] for batch in batches],
        collate_fn=list,
        **loader_processes(4 * options.computing.cuda if options.num_workers is None else options.num_workers),
        worker_init_fn=leave_to_the_parent,
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
                if length != clip.n_frames:  # it must lie on its recording
                    refusal = (
                        f"{length} frames, but {clip.recording} has {clip.n_frames}; were the features made of this "
                        "recording, without --trim-silence?"
                    )
                    report.refused.append((clip.where, refusal))
                elif not torch.isfinite(mel[:, :length]).all():
                    refusal = "the generator's mel is not finite; try --amp-dtype bfloat16, or no --amp"
                    report.refused.append((clip.where, refusal))
                else:
                    write_feature(clip.output, mel[:, :length])
                    report.made[str(clip.filelist)] += 1
        yield len(batch)
