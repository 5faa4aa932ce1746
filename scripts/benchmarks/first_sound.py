"""Compares the time to the first sound of a long sentence with that for all of it, in turns within one process.

    python -m scripts.benchmarks.random_models output/benchmark --model HiFi-GAN --kind v1
    python -m scripts.benchmarks.first_sound output/benchmark/HiFi-GAN_v1.pt --seconds 20

Both times begin at the symbols and include the text-to-mel model's, which makes the mel in one go. It is FastPitch,
with random weights unless there is a voice, and is told how long each symbol lasts, so that the sentence is as long as
asked. Seconds are medians over the turns, and so is the share, of which a load on the machine slows both sides.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from common.checkpoints import load_for_inference, open_checkpoint
from common.cli import ArgumentParser, run
from common.errors import InputError
from common.options import add_options, option, read_options
from common.precision import ComputingOptions
from common.synthesis import Controls, load_vocoder
from common.synthesis.measurements import first_sound
from common.synthesis.options import SpeakingOptions, VoiceOptions
from scripts.benchmarks.measuring import machine, markdown
from scripts.benchmarks.random_models import LETTERS_A_SECOND, VOICE, make_voice


@dataclass(frozen=True)
class SentenceOptions(ComputingOptions):
    """The sentence, and what speaks it."""

    voice: Path | None = option(None, f"checkpoint of {VOICE}; random weights if not given")
    seconds: float = option(20.0, "length of the sentence", above=0)
    denoising_strength: float = option(0.0, "of the vocoder's own noise", least=0, most=100)
    repeats: int = option(5, "turns that count", least=1)


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = ArgumentParser(prog="first_sound", description="compare the time to the first sound with that for all")
    parser.add_argument("vocoder", type=Path, help="checkpoint; random weights take the same time")
    add_options(parser, SentenceOptions)
    args = parser.parse_args(argv)
    options = read_options(args, SentenceOptions)
    precision = options.precision()
    precision.prepare_process()
    opened = open_checkpoint(args.vocoder, role="vocoder", ema=True)
    speaking = SpeakingOptions(seed=0, denoising_strength=options.denoising_strength)
    vocoder = load_vocoder(opened, VoiceOptions(speaking), precision=precision)
    audio = vocoder.audio
    with tempfile.TemporaryDirectory() as folder:
        voice = open_checkpoint(options.voice or make_voice(Path(folder), audio), model=VOICE, ema=True)
    if (made := voice.checkpoint.audio.n_mels) != audio.n_mels:
        raise InputError(f"{voice.path}: {made} mel channels, expected {audio.n_mels}, as the vocoder's")
    network, _ = load_for_inference(voice, device=precision.device)
    n_frames = max(1, round(options.seconds * audio.sampling_rate / audio.hop_length))
    n_symbols = min(n_frames, round(LETTERS_A_SECOND * options.seconds) or 1)
    borders = torch.arange(n_symbols + 1, device=precision.device) * n_frames // n_symbols
    controls = Controls(durations=borders.diff()[None].float())

    @torch.inference_mode()
    def mel() -> Tensor:
        """(1, n_mels, n_frames)."""
        symbols = torch.ones(1, n_symbols, dtype=torch.int64, device=precision.device)
        lengths = torch.tensor([n_symbols], device=precision.device)
        with precision.autocast():
            return network.infer(symbols, lengths, controls).mel.float()

    mels = first_sound(lambda: iter([mel().cpu()]), mel, turns=options.repeats)
    sound = first_sound(
        lambda: vocoder.stream(mel()[0]), lambda: vocoder.speak(mel(), [n_frames])[0].cpu(), turns=options.repeats
    )
    print(f"{args.vocoder.stem}, {options.seconds:g} s of sound, {precision.name}; {machine(cuda=options.cuda)}")
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
