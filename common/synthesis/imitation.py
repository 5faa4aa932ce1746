"""Speaks a text with the prosody of a recording of it: the durations, pitch and energy of its symbols."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from common.audio.decoding import decode
from common.audio.mel import MelExtractor, energy
from common.audio.pitch import AT_FRAMES, average_pitch, estimate_pitch
from common.errors import AudioError, InputError
from common.nn.alignment import warping_path
from common.synthesis.utterances import SynthesisInput, SynthesisResult
from common.synthesis.voice import Voice

_SPEECH_RANGE = 6.0  # nepers of power below the loud frames, 26 dB: what is quieter is silence
_KEPT_SILENCE = 5  # frames at each end of an utterance


def load_recording(source: Path | bytes, *, sampling_rate: int, max_seconds: float = 600.0, name: str = "") -> Tensor:
    """A recording, a file of any kind or its bytes, as a wave (T,) float32; ``name`` is what errors call it.

    Raises AudioError if it is no sound file, damaged, or longer than ``max_seconds``.
    """
    blocks, n_samples = list[np.ndarray](), 0
    for block in decode(source, sampling_rate=sampling_rate, name=name).blocks:
        blocks.append(block)
        n_samples += len(block)
        if n_samples > max_seconds * sampling_rate:
            raise AudioError(f"{name or str(source)}: longer than {max_seconds:g} s, the limit")
    return torch.from_numpy(np.concatenate([*blocks, np.zeros(0, np.float32)]))


@torch.no_grad()
def imitate(items: Sequence[SynthesisInput], wave: Tensor, voice: Voice, *, where: str) -> list[SynthesisInput]:
    """A text's utterances with the prosody of a recording of it, wave (T,) float32 at the voice's sampling rate.

    The voice's aligner finds the symbols in the recording; without one it is warped in time to the voice's own speech.
    The pitch is moved to the mean of the voice's, and a wider range is narrowed to the voice's. The energy is set where
    the voice has one. Errors name the recording ``where``. Raises InputError if the voice cannot speak with a given
    prosody, or the recording is too short, or holds no speech.
    """
    if not voice.shapes_prosody:
        raise InputError(f"{where}: {voice.spec.name} cannot speak with a given prosody; leave the recording out")
    mel = MelExtractor(voice.audio)(wave[None])[0]
    pitch = estimate_pitch(wave.numpy(), voice.audio, n_frames=mel.size(1), method=AT_FRAMES, where=where)
    is_speech = _is_speech(mel)
    first, last = is_speech.nonzero()[0][[0, -1]]
    speech = slice(max(0, first - _KEPT_SILENCE), last + 1 + _KEPT_SILENCE)
    mel, pitch, is_speech = mel[:, speech], pitch[speech], is_speech[speech]
    if (n_symbols := sum(item.length for item in items)) > mel.size(1):
        raise InputError(f"{where}: {mel.size(1)} frames of speech for {n_symbols} symbols; is it of this text?")
    if not pitch.any():
        raise InputError(f"{where}: no pitch is found in it; is it speech?")
    spoken = [voice.synthesizer.generate([item])[0] for item in items]
    mel = mel - _channel_means(mel) + _channel_means(torch.cat([one.mel for one in spoken], dim=1))
    durations = _durations(mel, spoken, voice)
    rows = {"pitch_hz": average_pitch(pitch, durations)}
    if spoken[0].of_symbols("decoded_energy") is not None:
        rows["energy"] = np.log1p(average_pitch(energy(mel).numpy(), durations))
    ends = np.cumsum([item.length for item in items])[:-1]
    columns = {name: np.split(values, ends) for name, values in rows.items()}
    parts = zip(items, np.split(durations, ends), np.split(is_speech, np.cumsum(durations)[ends - 1]))
    made, seconds = [], voice.audio.hop_length / voice.audio.sampling_rate
    for index, (item, frames, is_loud) in enumerate(parts):
        frames, lead, pause = _without_silence(frames, is_loud)
        hertz = _in_range(columns["pitch_hz"][index], pitch, voice, speaker=item.speaker)
        given: dict[str, Any] = {"durations": torch.from_numpy(frames).float(), "pitch_hz": torch.from_numpy(hertz)}
        if "energy" in columns:
            given["energy"] = torch.from_numpy(columns["energy"][index]).float()
        made.append(replace(item, **given, styles=None, lead=lead * seconds, pause=pause * seconds))
    return made


def _is_speech(mel: Tensor) -> np.ndarray:
    """Which frames of a mel (n_mels, F) are about as loud as its loud ones: (F,) bool."""
    levels = torch.logsumexp(2 * mel, dim=0)
    return (levels >= torch.quantile(levels, 0.9) - _SPEECH_RANGE).numpy()


def _channel_means(mel: Tensor) -> Tensor:
    """The mean of each channel in speech, (n_mels, 1): what a voice, a microphone and a distance make of all sounds."""
    return mel[:, torch.from_numpy(_is_speech(mel))].mean(dim=1, keepdim=True)


def _durations(mel: Tensor, spoken: Sequence[SynthesisResult], voice: Voice) -> np.ndarray:
    """Frames of all utterances' symbols in a recording's mel (n_mels, F), which they fill: (L,) int64."""
    precision = voice.synthesizer.precision
    if (align := getattr(voice.synthesizer.network, "align", None)) is not None:
        tokens = torch.cat([one.item.tokens for one in spoken if one.item.tokens is not None])
        with precision.autocast():
            aligned = align(tokens.to(precision.device), mel.to(precision.device))
        if aligned is not None:
            return aligned.cpu().numpy()
    frames = np.concatenate([one.frames_of_symbols() for one in spoken])
    own = torch.cat([one.mel for one in spoken], dim=1)
    rows, columns = warping_path(torch.cdist(own.t(), mel.t()).numpy()).T
    ends = np.append(columns[np.searchsorted(rows, np.cumsum(frames)[:-1])], mel.size(1))
    return np.diff(ends, prepend=0)


def _without_silence(frames: np.ndarray, is_loud: np.ndarray) -> tuple[np.ndarray, int, int]:
    """An utterance's frames (L,) without the silence at its ends, of which a little is kept, and the frames of that."""
    loud = np.flatnonzero(is_loud)
    before, after = (loud[0], len(is_loud) - 1 - loud[-1]) if len(loud) else (0, 0)
    lead = int(np.clip(before - _KEPT_SILENCE, 0, max(frames[0] - 1, 0)))
    frames = np.concatenate([[frames[0] - lead], frames[1:]])
    pause = int(np.clip(after - _KEPT_SILENCE, 0, max(frames[-1] - 1, 0)))
    return np.concatenate([frames[:-1], [frames[-1] - pause]]), lead, pause


def _in_range(hertz: np.ndarray, recording_pitch: np.ndarray, voice: Voice, *, speaker: int) -> np.ndarray:
    """Pitch (L,) in Hz of symbols, 0 where unvoiced, of a recording with the pitch (F,), in the range of a speaker.

    On the scale of tones, on which the voice's mean and standard deviation in Hz are those of a log-normal pitch.
    """
    mean, std = (
        getattr(voice.synthesizer.network, name, torch.zeros(1)).cpu().double() for name in ("pitch_mean", "pitch_std")
    )
    index = speaker if len(mean) > 1 else 0
    if not float(std[index]) > 0:
        raise InputError("the voice's checkpoint holds no pitch statistics to take pitch in Hz by")
    variance = float(torch.log1p((std[index] / mean[index]).square()))
    own_mean, own_std = float(mean[index].log()) - variance / 2, variance**0.5
    logs = np.log(recording_pitch[recording_pitch > 0])
    narrowing = min(1.0, own_std / max(float(logs.std()), 1e-6))
    moved = own_mean + (np.log(np.where(hertz > 0, hertz, 1.0)) - logs.mean()) * narrowing
    return np.where(hertz > 0, np.exp(moved), 0.0)
