"""Makes the mels that a vocoder is fine-tuned on: a text-to-mel model's own, teacher-forced over a corpus.

    python -m scripts.extract_fine_tune_mels --checkpoint FastPitch.pt -d LJSpeech-1.1 \\
        --filelist filelists/ljs_mel_dur_pitch_text_{train,val}_filelist.txt -o data/mels-fastpitch-ljs22khz

The lists are those that `train.py` reads for the text-to-mel model. FastPitch's durations and pitch come from there,
and Tacotron 2 hears each true frame before it makes the next one, so that each mel lies frame by frame on its
recording. The mel of ``mels/anna/1.pt`` or ``wavs/anna/1.wav`` is written to ``<output>/anna/1.pt``, and what all of
them are to ``<output>/audio.json``.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader

import data_functions
import models
from common.audio.mel import MelExtractor
from common.audio.wav import check_wav
from common.checkpoints.checkpoint import load_checkpoint
from common.cli import ArgumentParser, non_negative_int, positive_int, run
from common.config import AudioConfig, to_plain
from common.data.batch import Dataset, ErrorsAsItems
from common.data.filelist import first_fields
from common.distributed import Ranks
from common.errors import CheckpointError, InputError, OptionError
from common.files import load_tensor, read_json, save_tensor, sha256, write_json
from common.precision import (
    add_precision_arguments,
    amp_dtype_from_args,
    autocast,
    check_cuda,
    check_precision_arguments,
    choose_kernels,
    keep_freed_memory,
)
from common.progress import progress
from common.registry import GENERATORS
from common.signals import StopSignals
from common.synthesis.arguments import text_config_from_args
from common.text.arguments import add_phoneme_overrides
from common.text.cleaners import CLEANERS
from common.text.front_end import UNKNOWN_SYMBOLS
from common.text.symbols import CHARACTER_SETS, PHONE_SETS

_MEL = ".pt"  # a mel's file
SETTINGS, MAKER = "audio.json", "generator.json"  # beside the mels: what they are, and who made them


@dataclass(frozen=True)
class Generator:
    """A text-to-mel checkpoint, ready to speak along with recordings."""

    network: Any  # has teacher_forced(batch) -> MelOutput
    audio: AudioConfig
    maker: dict[str, str | bool]  # what tells it from another one
    build_dataset: Callable[[Path], Dataset]  # of a list
    device: torch.device
    amp_dtype: torch.dtype | None


@dataclass(frozen=True)
class Clip:
    """One line of a list: where its recording and its new mel are."""

    filelist: Path
    index: int  # in the list's dataset
    where: str  # "mels/a.pt (train.txt:7)"
    recording: Path
    n_frames: int  # that the recording has, by the generator's framing
    output: Path


@dataclass
class Report:
    """What became of each list's clips."""

    total: Counter = field(default_factory=Counter)  # list -> clips
    made: Counter = field(default_factory=Counter)
    kept: Counter = field(default_factory=Counter)  # whole already
    refused: list[tuple[str, str]] = field(default_factory=list)  # (clip, reason)

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


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = ArgumentParser(
        prog="extract_fine_tune_mels",
        description="Make a text-to-mel model's mels of a corpus, teacher-forced, to fine-tune a vocoder on.",
        epilog="Exit status: 0 all clips made, 1 some refused or bad input, 2 wrong options.",
    )
    parser.add_argument("--checkpoint", type=Path, required=True, help="checkpoint of a text-to-mel model")
    parser.add_argument("-d", "--dataset-path", type=Path, default=Path(), help="folder that the lists start from")
    parser.add_argument(
        "--filelist", type=Path, nargs="+", required=True, help="lists as train.py reads them for that model"
    )
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for the mels")
    parser.add_argument("--ema", action="store_true", help="use the averaged weights of the checkpoint")
    parser.add_argument("--resume", action="store_true", help="keep mels of an earlier run that are whole")
    parser.add_argument("-bs", "--batch-size", type=positive_int, default=32, help="clips at once")
    parser.add_argument(
        "--num-workers", type=non_negative_int, help="loader processes (default: 4 with --cuda, else 0)"
    )
    add_precision_arguments(parser)
    group = parser.add_argument_group("text", "what a checkpoint says of its text front end need not be repeated")
    group.add_argument("--input-type", choices=("char", "phone"), help="instead of the checkpoint's")
    group.add_argument("--symbol-set", choices=(*CHARACTER_SETS, *PHONE_SETS), help="instead of the checkpoint's")
    group.add_argument("--text-cleaners", nargs="*", choices=tuple(CLEANERS), help="instead of the checkpoint's")
    group.add_argument("--unknown-symbols", choices=UNKNOWN_SYMBOLS, default="error", help="end the run, or drop them")
    add_phoneme_overrides(group)
    args = parser.parse_args(argv)
    check_precision_arguments(args)
    if args.p_arpabet not in (None, 0, 1):
        raise OptionError(f"--p-arpabet {args.p_arpabet}: a clip's words are all spoken as letters (0) or phones (1)")
    return args


def load_generator(args: argparse.Namespace) -> Generator:
    """The checkpoint on its device, with the settings that it was trained with.

    Raises:
        CheckpointError: it is not of a text-to-mel model.
    """
    if args.cuda:
        check_cuda()
    device = torch.device("cuda" if args.cuda else "cpu")
    checkpoint = load_checkpoint(args.checkpoint)
    if checkpoint.model not in GENERATORS:
        raise CheckpointError(
            f"{args.checkpoint}: a checkpoint of {checkpoint.model}, expected one that makes mels of text "
            f"({' or '.join(GENERATORS)})"
        )
    text = text_config_from_args(args, checkpoint.text, where=args.checkpoint)
    networks, config = models.load_networks(checkpoint, ema=args.ema, device=device, where=str(args.checkpoint))
    network = next(iter(networks.values()))
    network.prepare_for_inference()

    def build_dataset(filelist: Path) -> Dataset:
        of_dataset = argparse.Namespace(
            dataset_path=args.dataset_path,
            n_speakers=getattr(config, "n_speakers", 1),
            load_mel_from_disk=_holds_mels(filelist),
            unknown_symbols=args.unknown_symbols,
            seed=0,  # nothing is drawn: every clip is read as it is spoken
            learned_alignment=getattr(config, "learned_alignment", False) and not _holds_durations(filelist),
            pitch_method="praat",
            pitch_cache=None,
            num_workers=args.num_workers,
        )
        made = data_functions.build_dataset(checkpoint.model, of_dataset, filelist, audio=checkpoint.audio, text=text)
        if survey := getattr(models.get_package(checkpoint.model).data_function, "survey", None):
            survey(networks, of_dataset, training_set=made, validation_set=made, ranks=Ranks())
        return made

    return Generator(
        network=network,
        audio=checkpoint.audio,
        maker={"model": checkpoint.model, "sha256": sha256(args.checkpoint), "ema": args.ema},
        build_dataset=build_dataset,
        device=device,
        amp_dtype=amp_dtype_from_args(args),
    )


def claim_output(folder: Path, generator: Generator) -> None:
    """Say in ``folder`` what the mels are; refuse one that holds those of another generator.

    Raises:
        InputError: mels of another generator, or of an unknown one, are there, or nothing can be written.
    """
    stated = {SETTINGS: to_plain(generator.audio), MAKER: generator.maker}
    if folder.is_dir() and next(folder.rglob("*.pt"), None) is not None:
        for name, value in stated.items():
            if not (folder / name).is_file() or read_json(folder / name) != value:
                raise InputError(
                    f"{folder}: holds mels of another generator or of other weights ({name}); move the folder away, "
                    "or choose another --output"
                )
        return
    try:
        for name, value in stated.items():
            write_json(folder / name, value)
    except OSError as error:
        raise InputError(f"{folder}: cannot write there ({error.strerror}); choose another --output") from error


def plan(
    datasets: dict[Path, Dataset], args: argparse.Namespace, generator: Generator, report: Report
) -> dict[Path, list[Clip]]:
    """The clips of each list that are to be made; what cannot be or need not be goes into ``report``.

    Raises:
        InputError: two lines would write the same mel.
    """
    clips: dict[Path, list[Clip]] = {}
    seen: dict[Path, str] = {}
    extractor = MelExtractor(generator.audio)
    for filelist, dataset in datasets.items():
        clips[filelist] = []
        report.total[filelist] = len(dataset)
        for index, (number, path) in enumerate(_first_column(filelist)):
            where = f"{path} ({filelist}:{number})"
            first, *rest = PurePosixPath(path).parts
            name = Path(*rest) if rest else Path(first)
            output = args.output / name.with_suffix(".pt")
            if output in seen:
                raise InputError(f"{where}: its mel is {output}, as that of {seen[output]}")
            seen[output] = where
            try:
                recording = args.dataset_path / path
                if recording.suffix == _MEL:
                    recording = find_recording(args.dataset_path / "wavs" / name)
                n_samples = check_wav(recording, sampling_rate=generator.audio.sampling_rate).n_samples
            except InputError as error:
                report.refused.append((where, str(error)))
                continue
            clip = Clip(filelist, index, where, recording, extractor.n_frames(n_samples), output)
            if args.resume and is_whole(clip, generator.audio):
                report.kept[filelist] += 1
            else:
                clips[filelist].append(clip)
    return clips


def _first_column(filelist: Path) -> list[tuple[int, str]]:
    """(line's number, first field) of each line; the dataset has read and checked the same list."""
    lines = filelist.read_text(encoding="utf-8-sig").split("\n")
    return [(number, line.split("|")[0].strip()) for number, line in enumerate(lines, start=1) if line.strip()]


def _holds_mels(filelist: Path) -> bool:
    """Whether a list is of mels, not of recordings, which Tacotron 2 reads too; one that is absent is another's say."""
    return not filelist.is_file() or any(path.endswith(_MEL) for _, path in _first_column(filelist)[:1])


def _holds_durations(filelist: Path) -> bool:
    """Whether a list has mels, durations and pitch; a learned alignment needs no durations."""
    return sum(field.endswith(_MEL) for field in first_fields(filelist)[:3]) == 3


def find_recording(stem: Path) -> Path:
    """``stem`` as .wav or .flac; raises InputError if there is neither."""
    for suffix in (".wav", ".flac"):
        path = stem.with_suffix(suffix)
        if path.is_file():
            return path
    raise InputError(f"{stem.with_suffix('.wav')}: no such recording")


def is_whole(clip: Clip, audio: AudioConfig) -> bool:
    """Whether a clip's mel is there and can be read."""
    try:
        return clip.output.is_file() and load_tensor(clip.output).shape == (audio.n_mels, clip.n_frames)
    except InputError:
        return False


def batches_of_like_length(dataset: Dataset, clips: Sequence[Clip], batch_size: int) -> list[list[Clip]]:
    """The longest first: what does not fit into memory shows at once."""
    ordered = sorted(clips, key=lambda clip: -dataset.lengths[clip.index])
    return [ordered[start : start + batch_size] for start in range(0, len(ordered), batch_size)]


def make_mels(
    dataset: Dataset, batches: list[list[Clip]], generator: Generator, *, num_workers: int, report: Report
) -> Iterator[int]:
    """Make and write the mels of one list; after each batch, yield the number of its clips."""
    loader = DataLoader(
        ErrorsAsItems(dataset),
        batch_sampler=[[clip.index for clip in batch] for batch in batches],
        collate_fn=list,
        num_workers=num_workers,
    )
    for clips, items in zip(batches, loader):
        report.refused += [(clip.where, str(item)) for clip, item in zip(clips, items) if isinstance(item, InputError)]
        good = [(clip, item) for clip, item in zip(clips, items) if not isinstance(item, InputError)]
        if good:
            mels = _teacher_forced(dataset.collate([item for _, item in good]), generator)
            for (clip, _), mel in zip(good, mels):
                _write(clip, mel, report)
        yield len(clips)


@torch.inference_mode()
def _teacher_forced(batch: Any, generator: Generator) -> list[Tensor]:
    """Each clip's mel (n_mels, F) float32, on the CPU."""
    with autocast(generator.device, generator.amp_dtype):
        output = generator.network.teacher_forced(batch.to(generator.device))
    mels, lengths = output.mel.float().cpu(), output.lengths.tolist()
    return [mel[:, :length] for mel, length in zip(mels, lengths)]


def _write(clip: Clip, mel: Tensor, report: Report) -> None:
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
        try:
            save_tensor(clip.output, mel, durable=False)
        except OSError as error:
            raise InputError(f"{clip.output}: cannot be written ({error.strerror})") from error
        report.made[clip.filelist] += 1


def main(argv: Sequence[str] | None = None) -> int:
    """Make all mels; exit status 1 if a clip was refused, 128 + the signal's number if one stopped the run early."""
    args = parse_args(argv)
    choose_kernels(args)
    if not args.cuda:
        keep_freed_memory()
    if len(set(args.filelist)) < len(args.filelist):
        raise OptionError("--filelist: a list is given twice")
    generator = load_generator(args)
    datasets = {path: generator.build_dataset(path) for path in args.filelist}
    claim_output(args.output, generator)
    report = Report()
    clips = plan(datasets, args, generator, report)
    num_workers = args.num_workers if args.num_workers is not None else 4 * args.cuda
    with StopSignals() as signals, progress(total=sum(map(len, clips.values())), desc="mels", unit="clip") as bar:
        for filelist, dataset in datasets.items():
            batches = batches_of_like_length(dataset, clips[filelist], args.batch_size)
            for n_clips in make_mels(dataset, batches, generator, num_workers=num_workers, report=report):
                bar.update(n_clips)
                if signals.received is not None:
                    break
            if signals.received is not None:
                break
    print(report)
    if signals.received is not None:
        print(f"stopped by {signals.received.name}; add --resume to go on")
        return 128 + signals.received
    return 1 if report.refused else 0


if __name__ == "__main__":
    run(main)
