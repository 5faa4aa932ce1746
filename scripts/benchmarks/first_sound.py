"""Compares the time to the first sound of a long sentence with that for all of it, in turns within one process.

    python -m scripts.benchmarks.random_models output/benchmark --model HiFi-GAN --kind v1
    python -m scripts.benchmarks.first_sound output/benchmark/HiFi-GAN_v1.pt --seconds 20

Both times begin at the symbols and include the text-to-mel model's, which makes the mel in one go. It is FastPitch,
with random weights unless there is a voice, and is told how long each symbol lasts, so that the sentence is as long as
asked. Seconds are medians over the turns, and so is the share, of which a load on the machine slows both sides.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from common.checkpoints import load_for_inference, open_checkpoint
from common.cli import (
    ArgumentParser,
    add_precision_arguments,
    positive_float,
    positive_int,
    precision_from_args,
    real_number,
    run,
)
from common.config import AudioConfig
from common.errors import InputError
from common.precision import Precision
from common.registry import get_model
from common.synthesis import Controls, load_vocoder
from common.synthesis.measurements import first_sound
from common.synthesis.options import SpeakingOptions, VoiceOptions
from scripts.benchmarks.machine import machine
from scripts.benchmarks.subjects import LETTERS_A_SECOND
from scripts.benchmarks.table import markdown

VOICE = "FastPitch"


def load_text_to_mel(path: Path | None, audio: AudioConfig, *, precision: Precision) -> Any:
    """The voice's network, or one of full size with random weights; raises InputError if it makes other mels."""
    if path is None:
        spec = get_model(VOICE)
        torch.manual_seed(0)
        networks = spec.build_networks(spec.config(n_mel_channels=audio.n_mels), audio, None, inference=True)
        network = next(iter(networks.values())).to(precision.device)
        network.prepare_for_inference()
        return network
    loaded = open_checkpoint(path, model=VOICE, ema=True)
    if loaded.checkpoint.audio.n_mels != audio.n_mels:
        made = loaded.checkpoint.audio.n_mels
        raise InputError(f"{path}: {made} mel channels, expected {audio.n_mels}, as the vocoder's; give its voice")
    return load_for_inference(loaded, device=precision.device)[0]


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = ArgumentParser(prog="first_sound", description="compare the time to the first sound with that for all")
    parser.add_argument("vocoder", type=Path, help="checkpoint; random weights take the same time")
    parser.add_argument("--voice", type=Path, help=f"checkpoint of {VOICE}; random weights if not given")
    parser.add_argument("--seconds", type=positive_float, default=20.0, help="length of the sentence")
    parser.add_argument(
        "--denoising-strength", type=real_number(0, 100), default=0.0, help="of the vocoder's own noise"
    )
    parser.add_argument("--repeats", type=positive_int, default=5, help="turns that count")
    add_precision_arguments(parser)
    args = parser.parse_args(argv)
    precision = precision_from_args(args)
    precision.prepare_process()
    loaded = open_checkpoint(args.vocoder, role="vocoder", ema=True)
    options = VoiceOptions(SpeakingOptions(seed=0, denoising_strength=args.denoising_strength))
    vocoder = load_vocoder(loaded, options, precision=precision)
    audio = vocoder.audio
    network = load_text_to_mel(args.voice, audio, precision=precision)
    n_frames = max(1, round(args.seconds * audio.sampling_rate / audio.hop_length))
    n_symbols = min(n_frames, round(LETTERS_A_SECOND * args.seconds) or 1)
    borders = torch.arange(n_symbols + 1, device=precision.device) * n_frames // n_symbols
    controls = Controls(durations=borders.diff()[None].float())

    @torch.inference_mode()
    def mel() -> Tensor:
        """(1, n_mels, n_frames)."""
        symbols = torch.ones(1, n_symbols, dtype=torch.int64, device=precision.device)
        lengths = torch.tensor([n_symbols], device=precision.device)
        with precision.autocast():
            return network.infer(symbols, lengths, controls).mel.float()

    mels = first_sound(lambda: iter([mel().cpu()]), mel, turns=args.repeats)
    sound = first_sound(
        lambda: vocoder.stream(mel()[0]), lambda: vocoder.speak(mel(), [n_frames])[0].cpu(), turns=args.repeats
    )
    print(f"{args.vocoder.stem}, {args.seconds:g} s of sound, {precision.name}; {machine(cuda=args.cuda)}")
    row = {
        "Text to mel (s)": f"{mels.whole:.3f}",
        "First sound (s)": f"{sound.seconds:.3f}",
        "All at once (s)": f"{sound.whole:.3f}",
        "First of all": f"{sound.share:.3f}",
        "All, streamed (s)": f"{sound.streamed:.3f}",
    }
    print(*markdown([row]), sep="\n")


if __name__ == "__main__":
    run(main)
