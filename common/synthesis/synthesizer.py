"""Synthesize utterances in batches: from symbols to mels, and from mels to sound."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from common.audio.mel import MelExtractor
from common.config import AudioConfig
from common.errors import InputError
from common.nn.layers import mask_from_lengths
from common.precision import Precision, timed
from common.synthesis.cuda_graphs import FRAME_STEP, SYMBOL_STEP
from common.synthesis.networks import TextToMel, TextToWave
from common.synthesis.options import FADE_OUT
from common.synthesis.utterances import GIVEN, Controls, MelOutput, SynthesisInput, SynthesisResult, envelope, silences
from common.synthesis.vocoder import Vocoder
from common.text.prosody import Style

LOWEST_PITCH = 20.0  # Hz; changed pitch isn't lower
# Fields of `Style` that a model applies, and the values (0 for None) that leave its predictions unchanged.
PREDICTED = {"rate": 1.0, "pitch": 1.0, "pitch_shift": 0.0, "pitch_hz": 0.0, "pitch_range": 1.0}


@dataclass(frozen=True, eq=False, kw_only=True)
class Synthesizer:
    """Synthesizes batches: the network makes mels, unless they're given, and the vocoder converts them to waves.

    A `TextToWave` network makes the waves itself, without a vocoder.
    """

    audio: AudioConfig
    precision: Precision
    network: TextToMel | TextToWave | None = None  # None: mels are given
    vocoder: Vocoder | None = None  # None: mels only, or a `TextToWave` network
    controls: Controls = Controls()  # for every utterance, except what it sets itself
    fade_out: int = FADE_OUT  # frames at the end of each utterance that fade to silence
    has_graphs: bool = False  # the network runs as CUDA graphs, so batches are padded to few shapes
    path: Path | None = None  # of the network's checkpoint, for errors

    def synthesize(self, batch: Sequence[SynthesisInput]) -> Iterator[SynthesisResult]:
        """Synthesize one batch, and yield each result as soon as it's ready.

        Raises an InputError that names the phrase if a mel or a wave isn't finite.
        """
        results = self.generate(batch)
        output = results[0].output
        if self.vocoder is None:
            for one in results:
                yield one if output.wave is None else replace(one, wave=torch.cat(list(self.pieces(one))))
            return
        size = self.vocoder.max_batch or len(batch)
        for start in range(0, len(batch), size):
            some, seconds = results[start : start + size], list[float]()
            lengths = [one.mel.size(1) for one in some]
            with timed(self.precision.device, seconds):
                waves = self.vocoder.speak(output.mel[start : start + len(some), :, : max(lengths)], lengths)
            for one, wave in zip(some, waves):
                wave = torch.cat(list(self.pieces(one, [wave.cpu()])))
                yield replace(one, wave=wave, vocoder_seconds=sum(seconds) / len(some))

    @torch.inference_mode()
    def generate(self, batch: Sequence[SynthesisInput]) -> list[SynthesisResult]:
        """Return the utterances' mels, without sound; an InputError names the phrase if a mel isn't finite."""
        seconds = list[float]()
        output = self._given_mels(batch) if batch[0].tokens is None else self._run_network(batch, seconds)
        mels, lengths = output.mel.float().cpu(), output.lengths.tolist()
        results = []
        for row, item in enumerate(batch):
            mel = mels[row, :, : lengths[row]]
            if not torch.isfinite(mel).all():
                raise _not_finite("mel-spectrogram", item, self.path)
            is_cut = output.finished is not None and not output.finished[row]
            time = sum(seconds) / len(batch)
            results.append(SynthesisResult(item, mel, output, row, is_cut=is_cut, generator_seconds=time))
        return results

    def pieces(self, result: SynthesisResult, sound: Iterable[Tensor] | None = None) -> Iterator[Tensor]:
        """Convert an utterance's mel to sound, in pieces (T_i,) float32 on the CPU, each as soon as it's ready.

        The pieces of ``sound`` replace the network's or the vocoder's; all get the utterance's volume. The silence
        before and after it comes in pieces of up to a second. Raises an InputError that names the phrase if the sound
        isn't finite.
        """
        hop, waves = self.audio.hop_length, result.output.wave
        if sound is None and waves is not None:
            sound = [waves[result.row, : result.mel.size(1) * hop].cpu()]
        elif sound is None:
            assert self.vocoder is not None, "sound needs a vocoder"
            sound = self.vocoder.stream(result.mel)
        factors, start = envelope(result, hop_length=hop, fade_out=self.fade_out), 0
        lead, pause = silences(result.item, self.audio)
        yield from torch.zeros(lead * hop).split(self.audio.sampling_rate) if lead else ()
        for piece in sound:
            end = start + len(piece)
            if not torch.isfinite(piece).all():
                raise _not_finite("sound", result.item, (self.vocoder or self).path)
            yield piece * factors[start:end]
            start = end
        yield from torch.zeros(pause * hop).split(self.audio.sampling_rate) if pause else ()

    def stream(self, items: Sequence[SynthesisInput]) -> Iterator[Tensor]:
        """Yield the sound of a text's utterances in pieces (T_i,) float32 on the CPU, with pauses between them."""
        for item in items:
            (result,) = self.generate([item])
            warn_of_cuts([result])
            yield from self.pieces(result)

    def _given_mels(self, batch: Sequence[SynthesisInput]) -> MelOutput:
        """Return the mels that the utterances come with (B, n_mels, F), on the device."""
        mels = [item.mel.t() for item in batch if item.mel is not None]
        padded, wave = pad_sequence(mels, batch_first=True).transpose(1, 2), None
        if isinstance(self.network, TextToWave):  # it speaks texts, so mels are silence
            wave = torch.zeros(len(mels), padded.size(2) * self.audio.hop_length)
        lengths = torch.tensor([len(one) for one in mels])
        return MelOutput(padded.to(self.precision.device), lengths, wave=wave)

    def _run_network(self, batch: Sequence[SynthesisInput], seconds: list[float]) -> MelOutput:
        """Generate mels (B, n_mels, F) on the device; add the time that this takes to ``seconds``."""
        assert self.network is not None, "utterances with tokens need a network"
        device, lengths = self.precision.device, [item.length for item in batch]
        n_symbols = max(lengths)
        if self.has_graphs:
            n_symbols += -n_symbols % SYMBOL_STEP
        given: dict[str, Any] = {name: _pad_column(name, batch, n_symbols, device) for name in ("tokens", *GIVEN)}
        tokens = given.pop("tokens")
        controls = replace(
            self.controls,
            speaker=torch.tensor([item.speaker for item in batch], device=device),
            frame_step=FRAME_STEP if self.has_graphs else 1,
            **given,
        )
        if any(item.styles for item in batch):
            controls = with_styles(controls, [item.styles for item in batch], tokens)
        with timed(device, seconds), self.precision.autocast():
            output = self.network.infer(tokens, torch.tensor(lengths, device=device), controls)
        if isinstance(output, MelOutput):
            return output
        wave = output.wave.float().cpu()
        padded = F.pad(wave, (0, self.audio.filter_length))  # short waves have no mel
        mel = self._extractor(padded)[:, :, : wave.size(1) // self.audio.hop_length]
        return MelOutput(mel, output.lengths, frames=output.frames, wave=wave)

    @cached_property
    def _extractor(self) -> MelExtractor:
        return MelExtractor(self.audio)


def _pad_column(name: str, batch: Sequence[SynthesisInput], n_symbols: int, device: torch.device) -> Tensor | None:
    """Pad a column of a batch to (B, n_symbols, ...); None if its utterances don't have it."""
    given = [value for item in batch if (value := getattr(item, name)) is not None]
    if not given:
        return None
    longest = given[0].new_zeros(n_symbols, *given[0].shape[1:])
    return pad_sequence([*given, longest], batch_first=True)[:-1].to(device)


def warn_of_cuts(results: Sequence[SynthesisResult]) -> None:
    """Print a warning if one of a phrase's results was cut because the voice didn't stop."""
    if cut := [one for one in results if one.is_cut]:
        print(cut[-1].cut_warning, file=sys.stderr)


def _not_finite(what: str, item: SynthesisInput, path: Path | None) -> InputError:
    return InputError(
        f"{item.phrase.where}: the {what} made for it is not finite; leave out --amp or use --amp-dtype bfloat16; "
        f"without --amp, {path or 'the network'} is damaged or diverged: give another checkpoint"
    )


def with_styles(controls: Controls, styles: Sequence[Sequence[Style] | None], tokens: Tensor) -> Controls:
    """Add the styles of the utterances' symbols, ``tokens`` (B, L), to the controls; None: keep predictions."""
    values, before = {}, controls.pitch_transform
    for name, predicted in PREDICTED.items():
        rows = [[float(getattr(style, name) or 0.0) for style in row or ()] for row in styles]
        rows = [row + [predicted] * (tokens.size(1) - len(row)) for row in rows]
        values[name] = torch.tensor(rows, device=tokens.device)

    def transform(pitch: Tensor, lengths: Tensor, mean: Tensor, std: Tensor) -> Tensor:
        """Apply the controls' own transformation, then the styles."""
        if not bool((std > 0).all()):
            raise InputError("this voice has no pitch statistics to change pitch with; give --pitch-mean-std-file")
        pitch = pitch if before is None else before(pitch, lengths, mean, std)
        mask = mask_from_lengths(lengths, pitch.size(1))
        hz = pitch * std + mean
        middle = (hz * mask).sum(1, keepdim=True) / lengths.unsqueeze(1)
        center = torch.where(values["pitch_hz"] > 0, values["pitch_hz"], middle)
        hz = (center + (hz - middle) * values["pitch_range"]) * values["pitch"] + values["pitch_shift"]
        return torch.where(mask, (hz.clamp(min=LOWEST_PITCH) - mean) / std, pitch)

    has_pitch = any(bool((values[name] != PREDICTED[name]).any()) for name in values if name != "rate")
    return replace(controls, pace=controls.pace * values["rate"], pitch_transform=transform if has_pitch else before)
