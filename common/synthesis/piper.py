"""Export a voice and its vocoder for Piper: one ONNX file from phones to sound, and its JSON description."""

import json
import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from common.checkpoints.exported import Exports, Noise, Part, Shapes, onnx_runner
from common.checkpoints.exporting import exports_of, largest_difference, write_onnx
from common.checkpoints.loading import LoadedCheckpoint
from common.config import AudioConfig
from common.errors import InputError
from common.files import write_text
from common.synthesis.loading import contract_of
from common.synthesis.options import FADE_OUT, SEED
from common.synthesis.utterances import Controls
from common.text.config import TextConfig
from common.text.espeak import espeak_voice
from common.text.front_end import TextFrontEnd
from common.text.symbols import BOUNDARY, CODE_POINTS, EDGE_SILENCE, SILENCES

# Piper's symbols that have other names here: silence at both ends, and the space between words.
_PIPER = {"^": EDGE_SILENCE, "$": EDGE_SILENCE, " ": BOUNDARY}
_PADDING = 0  # the id that Piper puts between symbols
_SCALES = (0.667, 1.0, 0.8)  # Piper's noise scale, length scale and second noise scale
_SECONDS_OF_NOISE = 12  # stored in the file; longer utterances repeat it


class _PiperVoice(nn.Module):
    """A voice and its vocoder as one network with Piper's inputs; ignores Piper's noise scales."""

    def __init__(
        self, parts: Sequence[Part], modules: Sequence[nn.Module], noise: Noise | None, audio: AudioConfig
    ) -> None:
        super().__init__()
        self.voice, self.vocoder = modules
        self.voice_inputs, self.vocoder_inputs = (tuple(part.inputs) for part in parts)
        self.n_faded = FADE_OUT * audio.hop_length - 1
        if noise is not None:  # each frame adds the same number of values
            n_frames = _SECONDS_OF_NOISE * audio.sampling_rate // audio.hop_length
            self.noise = noise(n_frames, SEED)
            self.per_frame = self.noise.size(-1) - noise(n_frames - 1, SEED).size(-1)
            self.of_none = self.noise.size(-1) - n_frames * self.per_frame

    def forward(self, input: Tensor, input_lengths: Tensor, scales: Tensor, sid: Tensor | None = None) -> Tensor:
        """input (1, L) ids, input_lengths (1,), scales (3,), sid (1,) -> sound (1, 1, T)."""
        # Remove Piper's padding, which these networks weren't trained with.
        is_symbol = (input != _PADDING) & (torch.arange(input.size(1)) < input_lengths)
        tokens = input[is_symbol].unsqueeze(0)
        unknown = torch.full_like(tokens, math.nan, dtype=torch.float32)
        given = {"tokens": tokens, "lengths": torch.ones_like(tokens).sum(1), "speaker": sid}
        given |= {"pace": torch.ones_like(unknown) / scales[1], "max_duration": scales[:1] * 0 + Controls.max_duration}
        given |= dict.fromkeys(("durations", "pitch", "energy"), unknown)
        mel, lengths = self.voice(**{name: given[name] for name in self.voice_inputs})[:2]
        sounding = {"mel": mel, "lengths": lengths}
        if "noise" in self.vocoder_inputs:
            places = torch.arange(mel.size(2) * self.per_frame + self.of_none) % self.noise.size(-1)
            sounding["noise"] = self.noise.index_select(-1, places)
        wave = self.vocoder(**{name: sounding[name] for name in self.vocoder_inputs})
        left = torch.arange(wave.size(1)).flip(0)  # how many samples follow each one
        return (wave * (left / left[0].clamp(max=self.n_faded)).clamp(max=1)).unsqueeze(0)


def write_piper(path: Path, generator: LoadedCheckpoint, vocoder: LoadedCheckpoint) -> float:
    """Write a voice with its vocoder to ``path``, and its `companions` next to it.

    Returns the largest difference between its sound and PyTorch's for random symbols. Raises InputError if the voice
    doesn't read Piper's symbols, or the vocoder doesn't read the voice's mels.
    """
    stored, text = generator.checkpoint, generator.checkpoint.text
    if text is None or (text.symbol_set, text.g2p) != (CODE_POINTS, "espeak"):
        read = "no symbols" if text is None else f"{text.symbol_set!r}{' without g2p' if text.g2p is None else ''}"
        how = f"--from-checkpoint with --symbol-set {CODE_POINTS} --g2p espeak"
        raise InputError(f"{generator.path}: reads {read}, but Piper {CODE_POINTS!r}; fine-tune it: train.py {how}")
    contract_of(vocoder).check(stored.audio, owner=str(generator.path), assumed=stored.assumed)
    voice, sound = (exports_of(one) for one in (generator, vocoder))
    if len(voice.parts) > 1:
        raise InputError(f"{generator.path}: {generator.spec.name} is exported as several files, but Piper takes one")
    n_speakers = getattr(stored.config, "n_speakers", 1)
    about = describe(text, name=path.stem, sampling_rate=stored.audio.sampling_rate, n_speakers=n_speakers)
    part = _part(voice, sound, stored.audio)
    metadata = {"model_type": "vits", "comment": "piper", "has_espeak": 1, "n_speakers": n_speakers}  # for sherpa-onnx
    metadata |= {"language": about["language"]["name_english"], "voice": about["espeak"]["voice"]}
    metadata |= {"sample_rate": stored.audio.sampling_rate}
    write_onnx(path, part, {name: str(value) for name, value in metadata.items()})
    tokens = "\n".join(f"{symbol} {ids[0]}" for symbol, ids in about["phoneme_id_map"].items())  # for sherpa-onnx
    for file, content in zip(companions(path), (json.dumps(about, indent=2, ensure_ascii=False), tokens)):
        write_text(file, content + "\n")
    return largest_difference(onnx_runner(path, part.outputs), part)


def companions(path: Path) -> tuple[Path, Path]:
    """Return the files next to a voice: Piper's description, and the symbols in sherpa-onnx's format."""
    return path.with_name(f"{path.name}.json"), path.with_suffix(".tokens.txt")


def describe(text: TextConfig, *, name: str, sampling_rate: int, n_speakers: int) -> dict[str, Any]:
    """Return Piper's description of a voice. Its quality is "medium", Piper's name for 22050 Hz."""
    symbols = TextFrontEnd(text).symbols
    ids = {symbol: [index] for index, symbol in enumerate(symbols) if symbol not in (*SILENCES, BOUNDARY)}
    family, _, region = text.g2p_language.partition("-")
    voice, language = espeak_voice(text.g2p_language)
    return {
        "dataset": name,
        "audio": {"sample_rate": sampling_rate, "quality": "medium"},
        "espeak": {"voice": voice},
        "language": {
            "code": f"{family}_{region.upper()}" if region else family,
            "family": family,
            "region": region.upper(),
            "name_english": language,
        },
        "inference": {"noise_scale": 0.0, "length_scale": 1.0, "noise_w": 0.0},
        "phoneme_type": "espeak",
        "phoneme_map": {},
        "phoneme_id_map": ids | {theirs: [symbols.index(own)] for theirs, own in _PIPER.items()},
        "num_symbols": len(symbols),
        "num_speakers": n_speakers,
        "speaker_id_map": {speaker: index for index, speaker in enumerate(text.speakers)} if n_speakers > 1 else {},
    }


def _part(voice: Exports, sound: Exports, audio: AudioConfig) -> Part:
    """Combine both networks into one part, with a form for ONNX."""
    parts = voice.parts[0], sound.parts[0]

    def onnx_form(quantized: bool) -> nn.Module:
        modules = [part.onnx_form(False) if part.onnx_form else part.module for part in parts]
        return _PiperVoice(parts, modules, sound.noise, audio).eval()

    inputs: Shapes = {"input": (1, "phones"), "input_lengths": (1,), "scales": (3,)}
    inputs |= {"sid": (1,)} if "speaker" in parts[0].inputs else {}
    outputs: Shapes = {"output": (1, 1, "samples")}
    module = _PiperVoice(parts, [part.module for part in parts], sound.noise, audio).eval()
    return Part("", module, inputs, outputs, partial(_examples, parts[0]), onnx_form=onnx_form)


def _examples(voice: Part, n_batch: int, length: int, generator: torch.Generator) -> tuple[Tensor, ...]:
    """Return Piper's inputs for one utterance of random symbols, with padding between them."""
    given = dict(zip(voice.inputs, voice.examples(1, length, generator)))
    tokens = given["tokens"].clamp(min=_PADDING + 1)
    padded = torch.stack([tokens, torch.full_like(tokens, _PADDING)], dim=2).flatten(1)
    speaker = [given["speaker"][:1]] if "speaker" in given else []
    return padded, torch.tensor([padded.size(1)]), torch.tensor(_SCALES), *speaker
