"""Measures training: mel frames a second of a full-size model, in each precision, on this machine.

    bash scripts/benchmark.sh train [--model HiFi-GAN] [--steps 2]

A step is what train.py does, by its engine, sampler and optimizers, from batches that are ready in memory. The first
line of the table is the plain way; the others are compared to it. Further options are train.py's.

FastPitch and Tacotron 2 learn from made-up utterances with lengths like LJSpeech's: uniform from 150 to 860 frames, 5.7
frames a character. Their plain way is float32 and utterances of any length together, padding computed with them as the
original does. Jasper learns from noise of lengths like LibriSpeech's, up to --max-duration; its plain way is the same.
Vocoders learn from made-up segments, of 8192 samples for HiFi-GAN (v1) and 8000 for WaveGlow. HiFi-GAN's plain way is
float32 with recordings and generated sound in two passes of the discriminators; WaveGlow has none, so that float32 is
what it is compared to.

A batch that does not fit into memory ends the run in one line with the exit status 3.
"""

import itertools
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from common import distributed
from common.cli import ArgumentParser, run
from common.config import AudioConfig
from common.data import Batch, GlobalBatchSampler
from common.distributed import Ranks
from common.errors import OptionError
from common.files import write_json
from common.options import add_options, option, read_options
from common.precision import Precision, has_bfloat16
from common.registry import available_models, get_model
from common.timing import Stopwatch
from common.training import Engine
from common.training.start import read_command
from scripts.benchmarks.measuring import Table, cell, machine
from scripts.benchmarks.random_models import LIST, configure, durations, make_corpus

OUT_OF_MEMORY = 3  # exit status
FRAMES = (150, 860)  # of an utterance, as LJSpeech's


@dataclass(frozen=True)
class MeasuredOptions:
    """What is trained, and how it is timed."""

    model: str = option("FastPitch", "what to train", names=("-m",), choices=available_models())
    segment_length: int | None = option(None, "samples of a vocoder's segment; as published if not given", least=1)
    max_duration: float = option(16.7, "of a recognizer's longest utterance, s", above=0)
    cuda: bool = option(False, "measure the GPU")
    settings: tuple[str, ...] = option((), "lines of the table, such as fp32; all if not given")
    steps: int = option(5, "updates that are timed, for each line", least=1)
    compile: bool = option(False, "compile the network with torch.compile")

    @property
    def subject(self) -> "Subject":
        """How the model is measured; one without an entry learns from recordings and transcripts."""
        return SUBJECTS.get(self.model, Subject())

    @property
    def segment(self) -> int | None:
        """Samples of a vocoder's segment; None for other models."""
        published = self.subject.segment
        return None if published is None else self.segment_length or published[1]


@dataclass(frozen=True)
class BenchmarkOptions(MeasuredOptions):
    """What is trained and timed, the batch, and where the figures go."""

    batch_size: int = option(16, "utterances of one micro-batch", least=1, names=("-bs",))
    accumulation: int = option(4, "micro-batches an update", least=1)
    json: Path | None = option(None, "file for the figures, by setting", writes=True)
    seed: int = option(1234, "of weights, corpus and draws", least=0)


@dataclass(frozen=True)
class Subject:
    """How a model is measured."""

    columns: tuple[str, ...] = ("wav", "text")  # of its training list
    options: tuple[str, ...] = ()  # of train.py
    has_plain: bool = False  # whether the original does it in another way, which the next two fields bring about
    plain_options: tuple[str, ...] = ()
    plain_config: Mapping[str, Any] = field(default_factory=dict)  # fields of ModelConfig
    cudnn_benchmark: bool = False  # as scripts/train.sh trains it
    segment: tuple[str, int] | None = None  # a vocoder's option of the segment length, and the published one in samples


SUBJECTS = {
    "FastPitch": Subject(
        ("mel", "durations", "pitch", "text"),
        ("--text-cleaners", "basic_cleaners"),
        has_plain=True,
        plain_config={"mask_convolutions": False},
    ),
    "Tacotron2": Subject(
        ("mel", "text"),
        ("--load-mel-from-disk", "--text-cleaners", "basic_cleaners"),
        has_plain=True,
        plain_options=("--no-mask-padding", "--no-mask-convolutions"),
    ),
    "HiFi-GAN": Subject(
        ("wav",),
        ("--concat-fwd",),
        has_plain=True,
        plain_options=("--no-concat-fwd",),
        segment=("--segment-size", 8192),
    ),
    "WaveGlow": Subject(("wav",), cudnn_benchmark=True, segment=("--segment-length", 8000)),
    "Harmonic": Subject(("wav",)),
    # Noise has nothing to teach; large steps would only diverge.
    "Jasper": Subject(("wav", "text"), ("--learning-rate", "1e-4"), has_plain=True),
}


@dataclass(frozen=True)
class Setting:
    """One line of a table."""

    name: str
    amp_dtype: torch.dtype | None = None
    plain: bool = False  # as the original does it
    tf32: bool = False


@dataclass(frozen=True)
class Figures:
    """What was measured of one setting."""

    frames_per_second: float  # of all processes
    samples_per_second: float | None  # of sound that a vocoder trained on
    seconds: float  # of an update
    memory: float | None  # GiB: the GPU's peak; None on the CPU
    sequences_per_second: float  # utterances or segments of all processes


def chosen_settings(options: MeasuredOptions) -> list[Setting]:
    """The lines of the table; raises OptionError for one that this model or device does not have.

    By default bfloat16 is left out, with a note, on a processor that emulates it: that takes a quarter of an hour.
    """
    settings = [Setting("plain fp32", plain=True)] if options.subject.has_plain else []
    settings.append(Setting("fp32"))
    if options.cuda:
        settings += [Setting("tf32", tf32=True), Setting("float16", torch.float16, tf32=True)]
    settings.append(Setting("bfloat16", torch.bfloat16, tf32=options.cuda))
    if not options.settings and not options.cuda and not has_bfloat16(cuda=False):
        note = "this processor has no bfloat16 instructions; --settings bfloat16 measures their emulation"
        print(f"note: bfloat16 is left out: {note}", file=sys.stderr)
        return settings[:-1]
    known = {setting.name: setting for setting in settings}
    for name in options.settings:
        if name not in known:
            raise OptionError(f"--settings {name!r}: expected some of {', '.join(map(repr, known))}")
    return [known[name] for name in options.settings or known]


def draw_lengths(count: int, options: BenchmarkOptions, further: Sequence[str]) -> tuple[list[int], int]:
    """Samples of ``count`` utterances, and their sampling rate in Hz; ``further`` are options of train.py.

    Lengths are uniform as LJSpeech's; of a recognizer they are spread as LibriSpeech's, and a vocoder's are segments.
    """
    audio = AudioConfig()
    if get_model(options.model).role == "recognizer":
        rate = configure(options.model, further)[1].sampling_rate
        seconds = durations(count, options.max_duration, np.random.default_rng(options.seed))
        return [round(value * rate) for value in seconds], rate
    if options.segment is not None:
        return [options.segment] * count, audio.sampling_rate
    generator = torch.Generator().manual_seed(options.seed)
    frames = torch.randint(FRAMES[0], FRAMES[1] + 1, (count,), generator=generator)
    return (audio.hop_length * frames).tolist(), audio.sampling_rate


def build(
    setting: Setting, options: BenchmarkOptions, further: Sequence[str], folder: Path, ranks: Ranks
) -> tuple[Engine, Any]:
    """A new engine of the model, and its dataset of the corpus in ``folder``; ``further`` are options of train.py."""
    spec, subject, files = get_model(options.model), options.subject, str(folder / LIST)
    words = ["--model", options.model, "--output", str(folder), "--dataset-path", str(folder)]
    words += ["--training-files", files, "--validation-files", files, *subject.options, *["--cuda"] * options.cuda]
    if subject.segment is not None:
        words += [subject.segment[0], str(options.segment)]
    words += [*further, *(subject.plain_options if setting.plain else ())]
    if setting.amp_dtype is not None:
        words += ["--amp", "--amp-dtype", setting.name]
    command = read_command(words)
    run, training = command.request.run, spec.training
    setup = training.set_up(command.options, command.request)
    config = training.model_config(setup.options, setup.audio, setup.text, base=None)
    if setting.plain:
        config = replace(config, **subject.plain_config)
    networks = spec.build_networks(config, setup.audio, setup.text)
    if training.set_up_networks is not None:
        training.set_up_networks(networks, setup.options, text=setup.text, new=True)
    dataset = training.build_dataset(
        setup.options, run.training_files, audio=setup.audio, text=setup.text, training=True
    )
    engine = Engine(
        networks,
        training.build_objective(setup.options, setup.audio),
        setup.optimization,
        replace(run, compile=options.compile, ema_decay=0.0),
        steps_per_epoch=options.steps,
        ranks=ranks,
        amp_dtype=setting.amp_dtype,
        same_shapes=setup.same_shapes,
    )
    return engine, dataset


def measure(setting: Setting, options: BenchmarkOptions, further: Sequence[str], corpus: Path, ranks: Ranks) -> Figures:
    """Train a new model for one update that is not timed and ``options.steps`` that are."""
    torch.manual_seed(options.seed)
    cudnn_benchmark = options.cuda and options.subject.cudnn_benchmark
    Precision(options.cuda, setting.amp_dtype, setting.tf32, cudnn_benchmark).prepare_process()
    engine, dataset = build(setting, options, further, corpus, ranks)
    updates = _updates(setting, dataset, options, ranks)
    engine.step(next(updates), epoch=1)  # warm-up: allocations, choice of algorithms, compilation
    if options.cuda:
        torch.cuda.reset_peak_memory_stats(ranks.device)
    ready, stopwatch = list(itertools.islice(updates, options.steps)), Stopwatch(ranks.device)
    ranks.gather(None)
    with stopwatch.running():  # no result is read before the end: an update may be launched while the last one runs
        results = [engine.step(micro_batches, epoch=1) for micro_batches in ready]
        frames = sum(result.n_frames for result in results)
        ranks.gather(None)
    spent, segment = stopwatch.seconds, options.segment
    sequences = options.batch_size * options.accumulation * ranks.world_size * options.steps
    memory = torch.cuda.max_memory_allocated(ranks.device) / 2**30 if options.cuda else None
    samples = None if segment is None else segment * sequences / spent
    return Figures(frames / spent, samples, spent / options.steps, memory, sequences / spent)


def _updates(setting: Setting, dataset: Any, options: BenchmarkOptions, ranks: Ranks) -> Iterator[list[Batch]]:
    """This process's micro-batches of one update after another, on the device."""
    count = len(dataset)
    # Lengths that all look alike leave the draw in random order.
    lengths = [0] * count if setting.plain else dataset.lengths
    sampler = GlobalBatchSampler(
        lengths, batch_size=options.batch_size, accumulation=options.accumulation, seed=options.seed, ranks=ranks
    )
    indices = [[draw.index for draw in batch] for batch in sampler]
    if setting.plain:
        order = torch.randperm(count, generator=torch.Generator().manual_seed(options.seed)).tolist()
        indices = [[order[index] for index in batch] for batch in indices]
    for start in range(0, len(indices), options.accumulation):
        group = indices[start : start + options.accumulation]
        batches = [dataset.collate([dataset.draw(index, epoch=1) for index in batch]) for batch in group]
        yield [batch.to(ranks.device) for batch in batches]


def parse_args(argv: Sequence[str] | None = None) -> tuple[BenchmarkOptions, list[str]]:
    """The options of the benchmark, and those that are for train.py."""
    parser = ArgumentParser(prog="benchmarks.train", description=(__doc__ or "").partition("\n")[0])
    add_options(parser, BenchmarkOptions)
    args, further = parser.parse_known_args(argv)
    return read_options(args, BenchmarkOptions), further


def main() -> int:
    """Measure each setting in turn and print the table."""
    options, further = parse_args()
    settings = chosen_settings(options)
    ranks = distributed.start(cuda=options.cuda)
    batch = f"{ranks.world_size} x {options.accumulation} x {options.batch_size}"
    if ranks.is_main:
        print(f"{options.model} on {machine(cuda=options.cuda)}\ntorch {torch.__version__}; {' '.join(sys.argv)}")
        print(f"global batch {batch}, {options.steps} updates a line")
    measured: dict[str, Figures] = {}
    table = Table()
    with tempfile.TemporaryDirectory() as folder:
        n_updates = options.steps + 1  # one before measuring
        count = options.batch_size * options.accumulation * ranks.world_size * n_updates
        lengths, rate = draw_lengths(count, options, further)
        make_corpus(Path(folder), lengths, options.subject.columns, sampling_rate=rate, seed=options.seed)
        for setting in settings:
            try:
                figures = measure(setting, options, further, Path(folder), ranks)
            except (RuntimeError, MemoryError) as error:
                if not _is_out_of_memory(error):
                    raise
                print(f"error: {setting.name}: out of memory at --batch-size {options.batch_size}", file=sys.stderr)
                return OUT_OF_MEMORY
            measured[setting.name] = figures
            if not ranks.is_main:
                continue
            first = next(iter(measured.values()))
            table.add(
                {
                    "setting": setting.name,
                    "frames/s": f"{figures.frames_per_second:.0f}",
                    "sequences/s": f"{figures.sequences_per_second:.2f}",
                    "ratio": f"{figures.frames_per_second / first.frames_per_second:.2f}",
                    "s/update": f"{figures.seconds:.3f}",
                    "GPU memory (GiB)": cell(figures.memory, ".1f"),
                }
            )
            if options.json is not None:
                write_json(options.json, {name: asdict(one) for name, one in measured.items()})
    distributed.stop()
    return 0


def _is_out_of_memory(error: Exception) -> bool:
    """Whether an error says that memory is exhausted; PyTorch has no class of its own for that on CPUs."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error)


if __name__ == "__main__":
    run(main)
