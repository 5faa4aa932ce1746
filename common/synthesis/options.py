"""Options of speech synthesis: input and output, how voices speak, acceleration and measuring."""

import argparse
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from common.checkpoints.command_line import EmaOptions, parse_options
from common.cli import MANY_BATCHES, MEASURING, ArgumentParser, ComputingOptions
from common.errors import OptionError
from common.options import add_options, group, option, option_of, read_options
from common.registry import ModelSpec
from common.text.options import TextOverrides

if TYPE_CHECKING:
    from common.checkpoints.loading import LoadedCheckpoint
    from common.precision import Precision

STANDARD = Path("-")  # standard input and output
SEED = 1234
FADE_OUT = 10  # frames
MAX_FRAMES = 2000  # of a symbol; about 20 s
GRIFFIN_LIM_ITERATIONS = 60
ACCEPTABLE_DIFFERENCES = ("framing", "peak")  # fields in which mels may differ and still sound like speech
SHORT_TEXT = 200  # characters, which the shipped voice speaks in half a second on one thread
WARMUP_STEPS = 3  # batches of --include-warmup
_measuring = partial(option, section=MEASURING)
_SOUND_SUFFIXES = (".wav", ".flac", ".ogg", ".mp3", ".opus", ".m4a")
_OTHER_SOUNDS = frozenset(".aac .mp4 .aif .aiff .au .wma .webm .raw .pcm .sph .caf .oga .wave .mpga".split())


@dataclass(frozen=True)
class CommandOptions:
    """What a command speaks (a list, one text or a prosody table), what it writes, and what it measures.

    Raises OptionError unless exactly one of the three is given, or if a list has no folder for its sound.
    """

    input: Path | None = option(
        None,
        "phrases: lines of output.wav|utterance, plain lines, or tab-separated columns with a header (output, text, "
        "mel, wav, pitch, duration, speaker); output's suffix selects the format: .wav, .flac, .ogg, .mp3, .opus or "
        ".m4a; or - for one text of any length from standard input",
        names=("-i",),
    )
    text: str | None = option(None, "text of any length to speak instead of --input, plain or with SSML")
    prosody: Path | None = option(None, "prosody to speak, written by --save-prosody", metavar="FILE")
    dataset_path: Path = option(Path(), "folder that the paths in mel, wav, pitch and duration are relative to")
    output: Path | None = option(
        None,
        "folder for the sound; for one text, also a file (default: speech.wav), or - for standard output",
        names=("-o",),
        writes=True,
    )
    show: bool = option(False, "print the text as words and as symbols instead of speaking it")
    quiet: bool = option(False, "print only warnings and errors")
    log_file: Path | None = option(None, "log of the figures (default: in --output)", writes=True, variable="LOG_FILE")
    save_mels: bool = option(False, "keep the mel-spectrograms too, in --output/mels")
    plots: bool = option(False, "plot each utterance next to its sound, a.png for a.wav")
    subtitles: str | None = option(None, "write subtitles next to the sound, a.srt for a.wav", choices=("srt", "vtt"))
    save_prosody: bool = option(False, "write each symbol's frames, pitch and energy to a.prosody.json, for --prosody")
    no_audio: bool = option(False, "stop after the mel-spectrograms")
    batch_size: int = _measuring(
        64, "phrases per batch", names=("-bs",), least=1, variable="BATCH_SIZE", published=("BS",)
    )
    repeats: int = _measuring(1, "times to speak the list, for measuring", least=1, variable="REPEATS")
    warmup_steps: int = _measuring(
        0, "batches to speak before measuring begins", least=0, variable="WARMUP", published=("NUM_WARMUP_STEPS",)
    )
    include_warmup: bool = _measuring(False, f"the same as --warmup-steps {WARMUP_STEPS}")
    benchmark: bool = _measuring(False, f"print latencies and throughput even for {MANY_BATCHES} batches or fewer")

    def __post_init__(self) -> None:
        given = [name for name in ("input", "text", "prosody") if getattr(self, name) is not None]
        if len(given) != 1:
            got = " and ".join(map(option_of, given)) or "none"
            raise OptionError(f"give one of --input, --text and --prosody, got {got}")
        if self.include_warmup:
            object.__setattr__(self, "warmup_steps", WARMUP_STEPS)
        measures = self.repeats > 1 or self.benchmark or self.log_file is not None or self.no_audio
        if self.output is None and not measures:
            if self.list is not None:
                raise OptionError("nothing would be saved; give --output, a folder for the sound")
            object.__setattr__(self, "output", Path("speech.wav"))
        if self.list is not None and self.output is not None and self.names_sound:
            name = self.output.name
            raise OptionError(f"--output {self.output}: expected a folder; files are named in the list: {name}|text")
        if self.output is not None and self.output.suffix.lower() in _OTHER_SOUNDS and not self.output.is_dir():
            raise OptionError(
                f"--output {self.output}: expected a name that ends in {', '.join(_SOUND_SUFFIXES)}, or a folder"
            )

    @property
    def list(self) -> Path | None:
        """The list of phrases; None for one text."""
        return None if self.input == STANDARD else self.input

    @property
    def names_sound(self) -> bool:
        """Whether ``output`` is a sound file, not a folder."""
        path = self.output
        return path is not None and path.suffix.lower() in _SOUND_SUFFIXES and not path.is_dir()

    @property
    def folder(self) -> Path | None:
        """The folder for the sound."""
        return self.output.parent if self.output is not None and self.names_sound else self.output


@dataclass(frozen=True)
class SpeakingOptions(EmaOptions):
    """How generators, vocoders and Griffin-Lim speak, independently of the model."""

    seed: int = option(SEED, "random seed, the same for every phrase or request", least=0, most=2**63 - 1)
    fade_out: int = option(FADE_OUT, "frames at the end of each utterance that fade to silence", least=0)
    speaker: str | None = option(None, "speaker's number or name, if no list gives it (default: 0)", variable="SPEAKER")
    plain: bool = option(False, "speak the Markdown characters in a text instead of reading it as Markdown")
    griffin_lim_iters: int | None = option(
        None,
        f"iterations of Griffin-Lim; if given, it replaces the shipped vocoder (default: {GRIFFIN_LIM_ITERATIONS})",
        least=1,
    )
    denoising_strength: float = option(
        0.0, "how much of a vocoder's noise to subtract", least=0, most=100, variable="DENOISING", published=("-d",)
    )
    accept_audio_differences: tuple[str, ...] = option(
        (), "fields in which mels may differ from the vocoder's; fine-tuning is better", choices=ACCEPTABLE_DIFFERENCES
    )


@dataclass(frozen=True)
class AccelerationOptions:
    """How the networks run."""

    torchscript: bool = option(False, "compile the networks to TorchScript", variable="TORCHSCRIPT")
    compile: bool = option(False, "compile the networks with torch.compile")
    cuda_graphs: bool = option(False, "run FastPitch and the vocoder as CUDA graphs, one per length")


@dataclass(frozen=True)
class VoiceOptions:
    """How a voice is made from checkpoints."""

    speaking: SpeakingOptions = group(SpeakingOptions, "speaking")
    front_end: TextOverrides = group(TextOverrides, "text: by default, the checkpoint's text front end")
    acceleration: AccelerationOptions = group(AccelerationOptions, "accelerating")
    models: Mapping[str, Any] = field(default_factory=dict)  # options of the models themselves, by role


_ANSWERS = {
    "the checkpoint contains it; leave it out": "-sr --sampling-rate --hop-length --stft-hop-length --win-length "
    "--n-speakers --max-seq-len --n-symbols --padding-idx --speaker-emb-weight --hifigan-config --concat-fwd --flows "
    "--groups --early-every --early-size",
    "recordings are scaled by their own bit depth; leave it out": "--max-wav-value",
    "it is a training option; leave it out": "--segment-length --sigma",
    "files are recognized by their content; leave it out (--torchscript compiles)": "--checkpoint-format",
    "TensorRT is not supported; --compile or --cuda-graphs make inference faster": "--torch-tensorrt "
    "--trt-min-opt-max-batch --trt-min-opt-max-hifigan-length",
    "scripts/evaluate_voice.sh compares speech with recordings; leave it out": "--report-mel-loss",
    "the list names the files: lines of output.wav|text; leave it out": "--suffix",
    "use scripts/inference_benchmark.sh, or give a checkpoint and --benchmark": "-m --model-name --model "
    "--synth-data --bench-class",
}
# Options of the originals that no longer exist, and what to do.
REMOVED = {name: answer for answer, names in _ANSWERS.items() for name in names.split()}


def add_voice_options(parser: ArgumentParser, models: Sequence[ModelSpec], *, without: Collection[str] = ()) -> None:
    """Add `VoiceOptions` and the options of the ``models`` themselves, except fields in ``without``."""
    add_options(parser, VoiceOptions, without=without)
    for spec in models:
        add_options(parser.add_argument_group(f"speaking with {spec.name}"), spec.arg_parser.InferenceOptions)


class ParsedVoice(NamedTuple):
    """A command line, parsed with exactly the options of a voice's models."""

    args: argparse.Namespace
    files: tuple[list[tuple[str, Path]], list[tuple[str, Path]]]  # to write and to read, as for `check_apart`
    voice: VoiceOptions
    precision: "Precision"  # which the process is configured for


def parse_voice(
    argv: Sequence[str] | None,
    build_parser: Callable[[Sequence[ModelSpec], Collection[str]], ArgumentParser],
    opened: "Mapping[str, LoadedCheckpoint]",
    *,
    intermixed: bool = False,
) -> ParsedVoice:
    """Parse a command line again, with only the options of the ``opened`` checkpoints' models (by role)."""
    from common.precision import prepare_computing  # --help needs no PyTorch

    models = {role: one.spec for role, one in opened.items()}
    specs = list(models.values())
    parser = build_parser(specs, _unsupported_options(models))
    args = parse_options(argv, parser, specs, intermixed=intermixed)
    own = {role: read_options(args, spec.arg_parser.InferenceOptions) for role, spec in models.items()}
    options: VoiceOptions = read_options(args, VoiceOptions, models=own)
    precision = prepare_computing(read_options(args, ComputingOptions))
    if options.acceleration.cuda_graphs and not precision.cuda:
        print("warning: --cuda-graphs does nothing on the CPU; leave it out, or add --cuda", file=sys.stderr)
    return ParsedVoice(args, parser.files_of(args), options, precision)


def _unsupported_options(models: Mapping[str, ModelSpec]) -> set[str]:
    """Return the fields of these options that don't apply to the ``models`` (by role)."""
    generators, vocoders = ([one for one in models.values() if one.role == role] for role in ("generator", "vocoder"))
    found: dict[str, object] = {"ema": models}
    found |= dict.fromkeys("front_end text prosody subtitles save_prosody plain show".split(), generators)
    found["accept_audio_differences"] = vocoders
    found["cuda_graphs"] = vocoders or any(one.recordable for one in generators)
    found["griffin_lim_iters"] = not (vocoders or any(one.makes_wave for one in generators))
    found["speaker"] = any("n_speakers" in one.config.ModelConfig.__dataclass_fields__ for one in generators)
    found["denoising_strength"] = any(one.has_noise for one in vocoders)
    found["torchscript"] = any(one.find("model", "to_torchscript") for one in models.values())
    found["compile"] = any(one.compilable for one in models.values())
    return {name for name, is_supported in found.items() if not is_supported}
