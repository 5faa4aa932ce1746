"""Pictures of what was spoken: its mel-spectrogram, symbols, attention, pitch and energy over time."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from common.audio import estimate_pitch
from common.config import AudioConfig
from common.errors import AudioError
from common.synthesis.controls import MelOutput
from common.synthesis.synthesizer import SynthesisResult


def draw_result(result: SynthesisResult, path: Path, *, audio: AudioConfig, symbols: Sequence[str] = ()) -> None:
    """Write an utterance's picture as a PNG, with what its generator tells of it; ``symbols`` are those of its ids.

    Pitch is drawn as measured in the sound, where there is one, and as the generator made it.

    Raises:
        InputError: the file cannot be written.
    """
    from common.plots import plot_utterance, save_png  # matplotlib takes half a second to import

    tokens = [] if result.tokens is None else result.tokens.tolist()
    n_frames = result.mel.size(1)
    pitch, curves = {}, {}
    durations, alignment = None, None
    if result.wave is not None:
        pitch["measured"] = _measured_pitch(result.wave, audio, n_frames=n_frames)
    output = result.output
    if output is not None and output.alignments is not None:
        alignment = output.alignments[result.row, :n_frames, : len(tokens)]
    elif output is not None and output.frames is not None:
        durations = output.frames[result.row, : len(tokens)].cpu()
        made = _over_frames(output, durations, row=result.row)
        if (hz := made.pop("pitch_hz", None)) is not None and hz.any():
            pitch["model"] = hz
        elif "pitch" in made:
            curves["pitch (normalized)"] = {"model": made["pitch"]}
        if "energy" in made:
            curves["energy"] = {"model": made["energy"]}
    figure = plot_utterance(
        {"": result.mel},
        audio=audio,
        title=result.phrase.text or str(result.phrase.output),
        symbols=[symbols[index] for index in tokens if isinstance(index, int)],  # phonological features are none
        durations=durations,
        alignment=alignment,
        pitch=pitch,
        curves=curves,
    )
    save_png(figure, path)


def _over_frames(output: MelOutput, durations: Tensor, *, row: int) -> dict[str, Tensor]:
    """What the generator says of each token's prosody, as values a frame (F,)."""
    values = {name: getattr(output, name) for name in ("pitch_hz", "pitch", "energy")}
    return {
        name: rows[row, : len(durations)].float().cpu().repeat_interleave(durations)
        for name, rows in values.items()
        if rows is not None
    }


def _measured_pitch(wave: Tensor, audio: AudioConfig, *, n_frames: int) -> Tensor:
    """Pitch (n_frames,) of wave (T,) in Hz, 0 where unvoiced, and everywhere in what is too short to tell."""
    try:
        return torch.from_numpy(estimate_pitch(wave.numpy(), audio, n_frames=n_frames))
    except AudioError:
        return torch.zeros(n_frames)
