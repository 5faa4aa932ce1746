"""Pictures of what was spoken: its mel-spectrogram, symbols, attention, pitch and energy over time."""

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from common.audio import estimate_pitch
from common.config import AudioConfig
from common.errors import AudioError
from common.synthesis.speech import Speech, silences
from common.synthesis.utterances import SynthesisResult


def draw_speech(speech: Speech, path: Path) -> None:
    """Write a picture of what was spoken as a PNG, with what its generator tells of it.

    Pitch is drawn as measured in the sound, where there is one, and as the generator made it.

    Raises:
        InputError: the file cannot be written.
    """
    from common.plots import plot_utterance, save_png  # matplotlib takes half a second to import

    first, n_frames = speech.parts[0], speech.mel.size(1)
    pitch, curves = {}, {}
    durations, alignment = None, None
    symbols: list[str] = []
    if speech.has_sound:
        pitch["measured"] = _measured_pitch(speech.wave, speech.audio, n_frames=n_frames)
    if first.output is not None and first.item.tokens is not None:
        rows = [_symbols_of(part, speech) for part in speech.parts]
        symbols = [symbol for names, _ in rows for symbol in names]
        if len(rows) == 1 and first.output.alignments is not None:
            symbols = list(first.item.symbols)
            alignment = first.output.alignments[first.row, : first.mel.size(1), : first.item.length]
        elif all(frames is not None for _, frames in rows):
            durations = torch.cat([frames for _, frames in rows if frames is not None])
            made = {name: _over_frames(name, speech, durations) for name in ("pitch_hz", "pitch", "energy")}
            if (hz := made["pitch_hz"]) is not None and hz.any():
                pitch["model"] = hz
            elif made["pitch"] is not None:
                curves["pitch (normalized)"] = {"model": made["pitch"]}
            if made["energy"] is not None:
                curves["energy"] = {"model": made["energy"]}
    figure = plot_utterance(
        {"": speech.mel},
        audio=speech.audio,
        title=first.phrase.text or str(first.phrase.output),
        symbols=symbols,
        durations=durations,
        alignment=alignment,
        pitch=pitch,
        curves=curves,
    )
    save_png(figure, path)


def _symbols_of(part: SynthesisResult, speech: Speech) -> tuple[list[str], Tensor | None]:
    """The symbols of an utterance and their frames (L,), with nameless ones for the silence around it."""
    lead, pause = (torch.tensor([n_frames] if n_frames else []) for n_frames in silences(part.item, speech.audio))
    frames = part.frames_of_symbols()
    if frames is not None:
        frames = torch.cat([lead.long(), frames, pause.long()])
    return [*[""] * len(lead), *part.item.symbols, *[""] * len(pause)], frames


def _over_frames(name: str, speech: Speech, durations: Tensor) -> Tensor | None:
    """What the generator says of each symbol, as values a frame (F,), 0 in pauses."""
    rows = []
    for part in speech.parts:
        values = part.of_symbols(name)
        if values is None:
            return None
        lead, pause = silences(part.item, speech.audio)
        rows.append(F.pad(values.float(), (int(lead > 0), int(pause > 0))))
    return torch.cat(rows).repeat_interleave(durations)


def _measured_pitch(wave: Tensor, audio: AudioConfig, *, n_frames: int) -> Tensor:
    """Pitch (n_frames,) of wave (T,) in Hz, 0 where unvoiced, and everywhere in what is too short to tell."""
    try:
        return torch.from_numpy(estimate_pitch(wave.numpy(), audio, n_frames=n_frames))
    except AudioError:
        return torch.zeros(n_frames)
