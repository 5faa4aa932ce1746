"""Synthesize utterances in batches: from symbols to mels, and from mels to sound."""

import sys
from collections.abc import Iterator, Mapping, Sequence
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
from common.precision import Precision
from common.synthesis.acceleration import PaddedShapes
from common.synthesis.networks import TextToMel, TextToWave
from common.synthesis.options import FADE_OUT
from common.synthesis.speech import Speech
from common.synthesis.utterances import (
    CUT,
    GIVEN,
    NOT_SPOKEN,
    SHORTEST_SPEECH,
    Controls,
    MelOutput,
    Phrase,
    PitchTransformation,
    SynthesisInput,
    SynthesisResult,
    envelope,
    mel_of,
    silences,
    told_pitch,
)
from common.synthesis.vocoder import Vocoder
from common.text.prosody import Style
from common.timing import timed


@dataclass(frozen=True)
class BatchTimes:
    """Time and size of one batch; frames, samples and tokens don't count padding."""

    n_utterances: int
    n_tokens: int
    n_frames: int
    n_samples: int
    generator: float | None  # s; None: mels were given
    vocoder: float | None  # s; None: no sound was made

    @staticmethod
    def of(results: Sequence[SynthesisResult], *, hop_length: int) -> "BatchTimes":
        """Sum up the ``results`` of a batch."""
        generator = [one.generator_seconds for one in results if one.generator_seconds is not None]
        vocoder = [one.vocoder_seconds for one in results if one.vocoder_seconds is not None]
        n_frames = sum(one.mel.size(1) for one in results)
        return BatchTimes(
            n_utterances=len(results),
            n_tokens=sum(len(one.item.tokens) for one in results if one.item.tokens is not None),
            n_frames=n_frames,
            n_samples=n_frames * hop_length,
            generator=sum(generator) if generator else None,
            vocoder=sum(vocoder) if vocoder else None,
        )

    @property
    def latency(self) -> float:
        """Seconds from the batch's symbols to its sound."""
        return (self.generator or 0.0) + (self.vocoder or 0.0)


@dataclass(frozen=True, eq=False, kw_only=True)
class Synthesizer:
    """Synthesizes batches: the network makes mels, unless they are given, and the vocoder makes waves of them.

    A `TextToWave` network makes the waves itself; then there is no vocoder.
    """

    audio: AudioConfig
    precision: Precision
    network: TextToMel | TextToWave | None = None  # None: mels are given
    vocoder: Vocoder | None = None  # None: mels alone, but for a network of sound
    controls: Controls = Controls()  # how every utterance is spoken, apart from what it says itself
    vocoder_pitch: str = "mel"  # of `VOCODER_PITCHES`; "voice": the vocoder is told the pitch of the symbols
    fade_out: int = FADE_OUT  # frames at the end of each utterance that fade to silence
    shapes: PaddedShapes | None = None  # that the network's batches are padded to; the vocoder's are, by itself
    path: Path | None = None  # of the network's checkpoint, for errors

    def generate(self, batch: Sequence[SynthesisInput]) -> list[SynthesisResult]:
        """The utterances' mels, without sound.

        Raises:
            InputError: a mel is not finite; names the phrase.
        """
        seconds = list[float]()
        output = self._mels(batch, seconds)
        mels, lengths = output.mel.float().cpu(), output.lengths.tolist()
        finished = [True] * len(batch) if output.finished is None else output.finished.tolist()
        results = []
        for row, item in enumerate(batch):
            mel = mels[row, :, : lengths[row]]
            _check_finite(mel, "mel-spectrogram", item.phrase, path=self.path)
            failure = "" if finished[row] else CUT
            if not failure and item.tokens is not None and lengths[row] < SHORTEST_SPEECH:
                failure = NOT_SPOKEN
            time = sum(seconds) / len(batch) if seconds else None
            results.append(SynthesisResult(item, mel, output=output, row=row, failure=failure, generator_seconds=time))
        return results

    def pieces(self, result: SynthesisResult) -> Iterator[Tensor]:
        """The sound of an utterance whose mel is made, in pieces (T_i,) float32 on the CPU, as soon as they are there.

        The silence before and after it is in pieces of up to a second.

        Raises:
            InputError: the sound is not finite; names the phrase.
        """
        factors, start = envelope(result, hop_length=self.audio.hop_length, fade_out=self.fade_out), 0
        lead, pause = silences(result.item, self.audio)
        yield from self._silence(lead)
        for piece in self._sound_of(result):
            end = start + len(piece)
            _check_finite(piece, "sound", result.item.phrase, path=(self.vocoder or self).path)
            yield piece if factors is None else piece * factors[start:end]
            start = end
        yield from self._silence(pause)

    def _sound_of(self, result: SynthesisResult) -> Iterator[Tensor]:
        """The sound of a mel in pieces; in one where the network has made it."""
        if result.output is not None and result.output.wave is not None:
            return iter([result.output.wave[result.row, : result.mel.size(1) * self.audio.hop_length].cpu()])
        assert self.vocoder is not None, "sound needs a vocoder"
        return self.vocoder.stream(result.mel.to(self.precision.device), **self._pitch_of([result]))

    def _silence(self, n_frames: int) -> Iterator[Tensor]:
        if n_frames:
            yield from torch.zeros(n_frames * self.audio.hop_length).split(self.audio.sampling_rate)

    def stream_inputs(self, items: Sequence[SynthesisInput]) -> Iterator[Tensor]:
        """The sound of a text's utterances in pieces (T_i,) float32 on the CPU, with the pauses between them."""
        for item in items:
            (result,) = self.generate([item])
            warn_of_failures([result])
            yield from self.pieces(result)

    def speak_inputs(self, items: Sequence[SynthesisInput]) -> Speech:
        """The speech of a text's utterances, one after the other."""
        return Speech(tuple(result for item in items for result in self.synthesize([item])), self.audio)

    def synthesize(self, batch: Sequence[SynthesisInput]) -> Iterator[SynthesisResult]:
        """Synthesize one batch, and yield each result as soon as it is there.

        Raises:
            InputError: a mel or a wave is not finite; names the phrase.
        """
        results = self.generate(batch)
        size = (self.vocoder and self.vocoder.max_batch) or len(batch)
        for start in range(0, len(batch), size):
            yield from self._with_sound(results[start : start + size])

    def _with_sound(self, results: Sequence[SynthesisResult]) -> Iterator[SynthesisResult]:
        """The results of a batch with their waves; as they are without a vocoder."""
        output, first = results[0].output, results[0].row
        assert output is not None
        seconds = list[float]()
        if output.wave is not None:
            waves = [next(self._sound_of(one)) for one in results]
        elif self.vocoder is None:
            yield from results
            return
        else:
            lengths = [one.mel.size(1) for one in results]
            with timed(self.precision.device, seconds):
                mel = output.mel[first : first + len(results), :, : max(lengths)]
                waves = self.vocoder.speak(mel, lengths, **self._pitch_of(results))
        for one, wave in zip(results, waves):
            wave, factors = wave.cpu(), envelope(one, hop_length=self.audio.hop_length, fade_out=self.fade_out)
            _check_finite(wave, "sound", one.item.phrase, path=(self.vocoder or self).path)
            wave = wave if factors is None else wave * factors
            wave = F.pad(wave, [n * self.audio.hop_length for n in silences(one.item, self.audio)])
            yield replace(one, wave=wave, vocoder_seconds=sum(seconds) / len(results) if seconds else None)

    def _pitch_of(self, results: Sequence[SynthesisResult]) -> dict[str, Tensor]:
        """Pitch arguments of the vocoder: the list's, with its voicing, or the generator's, or none."""
        if self.vocoder_pitch == "voice":
            curves = [one.pitch_of_frames() for one in results]
            return {"pitch": pad_sequence(curves, batch_first=True).to(self.precision.device)}
        return told_pitch(_pad_column("frame_pitch", [one.item for one in results], 0, self.precision.device))

    @torch.inference_mode()
    def _mels(self, batch: Sequence[SynthesisInput], seconds: list[float]) -> MelOutput:
        """Mels (B, n_mels, F) on the device, given or generated; the time of making them is added to ``seconds``."""
        if batch[0].tokens is None:
            mels = [mel_of(item) for item in batch]
            padded = pad_sequence([one.t() for one in mels], batch_first=True).transpose(1, 2)
            wave = None
            if isinstance(self.network, TextToWave):  # which speaks texts; of others nothing is said
                wave = torch.zeros(len(mels), padded.size(2) * self.audio.hop_length)
            return MelOutput(padded.to(self.precision.device), torch.tensor([one.size(1) for one in mels]), wave=wave)
        rows, n_symbols = list(batch), max(item.length for item in batch)
        if self.shapes is not None:
            rows += [batch[-1]] * (self.shapes.rows(len(batch)) - len(batch))
            n_symbols = self.shapes.symbols(n_symbols)
        tokens = _pad_column("tokens", rows, n_symbols, self.precision.device)
        assert tokens is not None and self.network is not None, "utterances with tokens need a network"
        lengths = torch.tensor([item.length for item in rows], device=self.precision.device)
        controls = self._controls_of(rows, n_symbols)
        with timed(self.precision.device, seconds), self.precision.autocast():
            output = self.network.infer(tokens, lengths, controls)
        if isinstance(output, MelOutput):
            return output
        wave = output.wave.float().cpu()
        mel = self._extractor(F.pad(wave, (0, self.audio.filter_length)))  # as short ones have no mel
        mel = mel[:, :, : wave.size(1) // self.audio.hop_length]
        return MelOutput(mel, output.lengths, frames=output.frames, wave=wave)

    @cached_property
    def _extractor(self) -> MelExtractor:
        return MelExtractor(self.audio)

    def _controls_of(self, batch: Sequence[SynthesisInput], n_symbols: int) -> Controls:
        """The controls of all utterances, and those of each, padded to ``n_symbols``."""
        given: dict[str, Any] = {name: _pad_column(name, batch, n_symbols, self.precision.device) for name in GIVEN}
        controls = replace(
            self.controls,
            speaker=torch.tensor([item.speaker for item in batch], device=self.precision.device),
            frame_step=1 if self.shapes is None else self.shapes.frame_step,
            **given,
        )
        return with_styles(controls, [item.styles for item in batch], n_symbols=n_symbols, device=self.precision.device)


def _pad_column(name: str, batch: Sequence[SynthesisInput], n_symbols: int, device: torch.device) -> Tensor | None:
    """A column of a batch, padded to (B, n_symbols, ...); None if its utterances don't have it."""
    given = [getattr(item, name) for item in batch if getattr(item, name) is not None]
    if not given:
        return None
    longest = given[0].new_zeros(n_symbols, *given[0].shape[1:])
    return pad_sequence([*given, longest], batch_first=True)[:-1].to(device)


def warn_of_failures(results: Sequence[SynthesisResult]) -> None:
    """Print a warning for each phrase that was cut or not spoken."""
    failed = dict[Phrase, SynthesisResult]()
    for one in results:
        if one.failure:
            failed.setdefault(one.item.phrase, one)
    for one in failed.values():
        print(f"warning: {one.describe_failure()}", file=sys.stderr)


def _check_finite(made: Tensor, what: str, phrase: Phrase, *, path: Path | None) -> None:
    if not torch.isfinite(made).all():
        raise InputError(
            f"{phrase.where}: the {what} made for it is not finite; leave out --amp or use --amp-dtype bfloat16; "
            f"without --amp {path or 'the network'} is damaged or diverged: give another checkpoint"
        )


LOWEST_PITCH = 20.0  # Hz; changed pitch is clamped to it
# Fields of `Style` that a model carries out, and the values (0 for None) with which a symbol is said as predicted.
_PREDICTED = {"rate": 1.0, "pitch": 1.0, "pitch_shift": 0.0, "pitch_hz": 0.0, "pitch_range": 1.0}


def changes_prosody(style: Style) -> bool:
    """Whether the style changes the predicted pace or pitch."""
    return any((getattr(style, name) or 0.0) != value for name, value in _PREDICTED.items())


def with_styles(
    controls: Controls, styles: Sequence[Sequence[Style] | None], *, n_symbols: int, device: torch.device
) -> Controls:
    """The controls of a batch with the styles of each utterance's symbols; None: all are said as predicted.

    Values (B, n_symbols) are on ``device``.
    """
    if not any(styles):
        return controls
    values = {}
    for name, predicted in _PREDICTED.items():
        rows = [[float(getattr(style, name) or 0.0) for style in row or ()] for row in styles]
        values[name] = torch.tensor([row + [predicted] * (n_symbols - len(row)) for row in rows], device=device)
    transform = controls.pitch_transform
    if any(bool((values[name] != _PREDICTED[name]).any()) for name in values if name != "rate"):
        transform = _styled_pitch(values, before=transform)
    return replace(controls, pace=controls.pace * values["rate"], pitch_transform=transform)


def _styled_pitch(styles: Mapping[str, Tensor], *, before: PitchTransformation | None) -> PitchTransformation:
    """A transformation of predicted pitch into that of the styles (B, L), after the one ``before``."""

    def transform(pitch: Tensor, lengths: Tensor, mean: Tensor, std: Tensor) -> Tensor:
        if not bool((std > 0).all()):
            raise InputError(
                "the voice's checkpoint holds no pitch statistics to change pitch by; give --pitch-mean-std-file"
            )
        if before is not None:
            pitch = before(pitch, lengths, mean, std)
        mask = mask_from_lengths(lengths, pitch.size(1))
        hz = pitch * std + mean
        middle = (hz * mask).sum(1, keepdim=True) / lengths.unsqueeze(1)
        center = torch.where(styles["pitch_hz"] > 0, styles["pitch_hz"], middle)
        hz = (center + (hz - middle) * styles["pitch_range"]) * styles["pitch"] + styles["pitch_shift"]
        return torch.where(mask, (hz.clamp(min=LOWEST_PITCH) - mean) / std, pitch)

    return transform
