"""Pictures of what was spoken: its mel-spectrogram, symbols, attention, pitch and energy over time."""

from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from common.audio import estimate_pitch
from common.config import AudioConfig
from common.errors import AudioError
from common.synthesis.prosody import SymbolProsody
from common.synthesis.speech import Speech
from common.synthesis.utterances import silences


def draw_speech(speech: Speech, path: Path) -> None:
    """Write a picture of what was spoken as a PNG, with what its generator tells of it.

    Pitch is drawn as measured in the sound, where there is one, and as the generator spoke with it.

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
    if len(speech.parts) == 1 and first.output is not None and first.output.alignments is not None:
        symbols = list(first.item.symbols)
        alignment = first.output.alignments[first.row, : first.mel.size(1), : first.item.length]
    elif first.item.tokens is not None:
        rows = list(_symbols_of(speech))
        symbols = [one.symbol for one in rows]
        durations = torch.tensor([one.frames for one in rows])
        if all(one.pitch is not None for one in rows):
            pitch["model"] = torch.tensor([one.pitch for one in rows]).repeat_interleave(durations)
        if all(one.energy is not None for one in rows):
            curves["energy"] = {"model": torch.tensor([one.energy for one in rows]).repeat_interleave(durations)}
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


def _symbols_of(speech: Speech) -> Iterator[SymbolProsody]:
    """The symbols of a text, with nameless ones for the silence around its utterances."""
    for part, utterance in zip(speech.parts, speech.table.utterances):
        lead, pause = (
            [SymbolProsody.model_construct(symbol="", frames=n_frames, pitch=0.0, energy=0.0)] * (n_frames > 0)
            for n_frames in silences(part.item, speech.audio)
        )
        yield from (*lead, *utterance.symbols, *pause)


def _measured_pitch(wave: Tensor, audio: AudioConfig, *, n_frames: int) -> Tensor:
    """Pitch (n_frames,) of wave (T,) in Hz, 0 where unvoiced, and everywhere in what is too short to tell."""
    try:
        return torch.from_numpy(estimate_pitch(wave.numpy(), audio, n_frames=n_frames))
    except AudioError:
        return torch.zeros(n_frames)
