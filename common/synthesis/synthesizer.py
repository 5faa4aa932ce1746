"""From a list of phrases to mels and sound: all phrases checked before the first is synthesized, length-bucketed."""

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from common.audio import save_wav
from common.config import AudioConfig, to_plain
from common.errors import InputError
from common.files import save_tensor, write_json
from common.precision import Autocast
from common.progress import Progress, progress
from common.signals import StopSignals
from common.synthesis.controls import Controls, MelOutput
from common.synthesis.measurements import BatchTimes
from common.synthesis.phrases import Phrase
from common.synthesis.vocoder import Vocoder
from common.timing import Stopwatch

SHORTEST_SPEECH = 3  # frames; networks make one at least, and no sound of speech is over after two


@dataclass(frozen=True)
class SynthesisInput:
    """A phrase as the networks take it, on the CPU."""

    phrase: Phrase
    tokens: Tensor | None = None  # (L,) int64; None: the mel is given
    mel: Tensor | None = None  # (n_mels, F)
    pitch: Tensor | None = None  # (L,) normalised, to speak with instead of the predicted pitch
    durations: Tensor | None = None  # (L,) frames, to speak with instead of the predicted ones
    speaker: int = 0

    @property
    def length(self) -> int:
        """Tokens, or frames of a given mel: what batches are sorted by."""
        return _mel_of(self).size(1) if self.tokens is None else len(self.tokens)


@dataclass(frozen=True)
class SynthesisResult:
    """One utterance's result, on the CPU."""

    phrase: Phrase
    mel: Tensor  # (n_mels, F) float32
    wave: Tensor | None  # (F * hop,) float32 in about [-1, 1]; None without a vocoder
    tokens: Tensor | None = None  # (L,) int64; None: the mel was given
    output: MelOutput | None = None  # of the batch with this utterance, on the generator's device
    row: int = 0  # the utterance's in it


class Generator(Protocol):
    """What the network of a text-to-mel model offers, and its TorchScript.

    The network has ``prepare_for_inference()`` too, which `common.checkpoints.loading.load_for_inference` calls once.
    """

    def infer(self, tokens: Tensor, lengths: Tensor, controls: Controls | None = None) -> MelOutput:
        """tokens (B, L), lengths (B,) -> mel (B, n_mels, F) with its lengths (B,)."""


def plan_batches(utterances: Sequence[SynthesisInput], batch_size: int) -> list[list[SynthesisInput]]:
    """Length-bucketed batches, the longest first, so that running out of memory shows at once."""
    ordered = sorted(utterances, key=lambda utterance: -utterance.length)  # stable: equal lengths keep their order
    return [ordered[start : start + batch_size] for start in range(0, len(ordered), batch_size)]


class Synthesizer:
    """Synthesizes batches: the generator makes mels, unless they are given, and the vocoder makes waves of them."""

    def __init__(
        self,
        *,
        generator: Generator | None,
        vocoder: Vocoder | None,
        controls: Controls,
        audio: AudioConfig,
        device: torch.device,
        autocast: Autocast,
    ) -> None:
        """``controls`` holds for every utterance, apart from what an utterance says itself."""
        self.unfinished: set[Phrase] = set()  # that the generator did not end
        self.silent: set[Phrase] = set()  # that it ended, but made fewer frames of than `SHORTEST_SPEECH`
        self._generator = generator
        self._vocoder = vocoder
        self._controls = controls
        self._hop_length = audio.hop_length
        self._device = device
        self._autocast = autocast
        self.times: list[BatchTimes] = []  # of the batches so far

    @property
    def vocoder_name(self) -> str:
        """The vocoder's name in the log; empty without one."""
        return self._vocoder.name if self._vocoder else ""

    def problems(self, n_phrases: int) -> list[str]:
        """Lines that count, out of ``n_phrases``, those that were cut and those that were not spoken."""
        counts = {
            "cut, as the voice did not end them": len(self.unfinished),
            f"not spoken: the voice made fewer than {SHORTEST_SPEECH} frames of each": len(self.silent),
        }
        return [f"{count} of {n_phrases} phrases were {reason}" for reason, count in counts.items() if count]

    def speak(self, batch: Sequence[SynthesisInput]) -> Iterator[SynthesisResult]:
        """Synthesize one batch, and yield each result as soon as it is there; `times` gets the batch's at the end.

        Raises:
            InputError: a mel or a wave is not finite; names the phrase.
        """
        watch = Stopwatch(self._device)
        output = self._mels(batch, watch)
        mel, lengths = output.mel, output.lengths.tolist()
        mels = [one[:, :length] for one, length in zip(mel.float().cpu(), lengths)]
        for item, one in zip(batch, mels):
            _check_finite(one, "mel-spectrogram", item.phrase)
        vocoder_watch = Stopwatch(self._device)
        size = (self._vocoder and self._vocoder.max_batch) or len(batch)
        for start in range(0, len(batch), size):
            part = slice(start, start + size)
            waves = self._waves(mel[part, :, : max(lengths[part])], lengths[part], vocoder_watch)
            for row, (item, one, wave) in enumerate(zip(batch[part], mels[part], waves), start):
                if wave is not None:
                    _check_finite(wave, "sound", item.phrase)
                yield SynthesisResult(item.phrase, one, wave, item.tokens, output, row)
        n_frames = sum(lengths)
        self.times.append(
            BatchTimes(
                n_utterances=len(batch),
                n_tokens=sum(len(item.tokens) for item in batch if item.tokens is not None),
                n_frames=n_frames,
                n_samples=n_frames * self._hop_length,
                generator=watch.seconds if self._generator is not None else None,
                vocoder=None if self._vocoder is None else vocoder_watch.seconds,
            )
        )

    def _waves(self, mel: Tensor, lengths: list[int], watch: Stopwatch) -> list[Tensor | None]:
        """The waves of mel (B, n_mels, F) on the CPU; None each without a vocoder."""
        if self._vocoder is None:
            return [None] * len(lengths)
        with watch.running():
            waves = self._vocoder.speak(mel, lengths)
        return [wave.cpu() for wave in waves]

    @torch.inference_mode()
    def _mels(self, batch: Sequence[SynthesisInput], watch: Stopwatch) -> MelOutput:
        """Mels (B, n_mels, F) on the device, given or generated; the time of making them is added to ``watch``."""
        if self._generator is None:
            mels = [_mel_of(item) for item in batch]
            padded = pad_sequence([one.t() for one in mels], batch_first=True).transpose(1, 2)
            return MelOutput(padded.to(self._device), torch.tensor([one.size(1) for one in mels]))
        tokens = self._pad(item.tokens for item in batch)
        assert tokens is not None, "phrases without mels come with tokens"
        lengths = torch.tensor([item.length for item in batch], device=self._device)
        controls = replace(
            self._controls,
            speaker=torch.tensor([item.speaker for item in batch], device=self._device),
            pitch=self._pad(item.pitch for item in batch),
            durations=self._pad(item.durations for item in batch),
        )
        with watch.running(), self._autocast():
            output = self._generator.infer(tokens, lengths, controls)
        finished = [True] * len(batch) if output.finished is None else output.finished.tolist()
        for item, n, ended in zip(batch, output.lengths.tolist(), finished):
            if not ended:
                reason = f"the voice did not end it; cut after {n} frames (--max-decoder-steps)"
                _warn_once(item.phrase, reason, self.unfinished)
            elif n < SHORTEST_SPEECH:
                reason = f"the voice did not speak it: {n} frame{'s' * (n > 1)} for {item.length} symbols"
                _warn_once(item.phrase, reason, self.silent)
        return output

    def _pad(self, rows: Iterable[Tensor | None]) -> Tensor | None:
        """The values of a column, padded; a list has a column for all of its phrases, or for none."""
        given = [row for row in rows if row is not None]
        return pad_sequence(given, batch_first=True).to(self._device) if given else None


def _warn_once(phrase: Phrase, reason: str, known: set[Phrase]) -> None:
    """Name a phrase that was not spoken as it should; once, however often it is synthesized."""
    if phrase not in known:
        known.add(phrase)
        print(f"warning: {phrase.where} ({phrase.output}): {reason}", file=sys.stderr)


def _mel_of(item: SynthesisInput) -> Tensor:
    assert item.mel is not None, "a phrase without tokens comes with its mel"
    return item.mel


def _check_finite(made: Tensor, what: str, phrase: Phrase) -> None:
    if not torch.isfinite(made).all():
        raise InputError(
            f"{phrase.where}: the {what} made for it is not finite; try --amp-dtype bfloat16, or leave out --amp"
        )


def speak_all(
    batches: Sequence[Sequence[SynthesisInput]],
    synthesizer: Synthesizer,
    *,
    warmup_steps: int,
    repeats: int,
    show_progress: bool,
    on_result: Callable[[SynthesisResult], None] | None,
    on_batch: Callable[[BatchTimes], None],
) -> None:
    """Synthesize every batch ``repeats`` times, after ``warmup_steps`` batches that do not count.

    ``on_result`` is given each result the first time, ``on_batch`` the times of each batch.

    Raises:
        SystemExit: a signal asked to stop; the phrase in work then is finished.
    """
    total = repeats * sum(len(batch) for batch in batches)
    bar: Progress[None] = progress(total=total, desc="speaking", unit="phrase", enabled=show_progress)
    with StopSignals() as signals, bar:
        for batch in itertools.islice(itertools.cycle(batches), warmup_steps):
            for _ in synthesizer.speak(batch):
                _stop_if_asked(signals)
        for repeat in range(repeats):
            for batch in batches:
                for result in synthesizer.speak(batch):
                    if repeat == 0 and on_result is not None:
                        on_result(result)
                    bar.update()
                    _stop_if_asked(signals)
                on_batch(synthesizer.times[-1])


def _stop_if_asked(signals: StopSignals) -> None:
    if signals.received is not None:
        raise SystemExit(128 + signals.received)


def fade_out(wave: Tensor, n_samples: int) -> Tensor:
    """wave (T,) with its last ``n_samples`` fading linearly to silence; all of a shorter wave fades."""
    n_samples = min(n_samples, len(wave))
    if n_samples == 0:
        return wave
    faded = wave.clone()
    faded[-n_samples:] *= torch.linspace(1, 0, n_samples)
    return faded


class OutputFolder:
    """Files of synthesized phrases: the sound as ``<output>``, ``mels/<output>.pt`` when mels are kept, and
    ``<output>.png``, where ``draw`` writes a picture.
    """

    def __init__(
        self,
        folder: Path,
        *,
        audio: AudioConfig,
        fade_out_frames: int,
        save_mels: bool,
        draw: Callable[[SynthesisResult, Path], None] | None = None,
    ) -> None:
        self.n_written = 0  # phrases
        self._folder = folder
        self._audio = audio
        self._fade_out = fade_out_frames * audio.hop_length  # samples
        self._save_mels = save_mels
        self._draw = draw
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if save_mels:
                write_json(folder / "mels" / "audio.json", to_plain(audio))
        except OSError as error:
            raise InputError(f"{folder}: cannot write there ({error.strerror}); choose another --output") from error

    def write(self, result: SynthesisResult) -> str:
        """Write one phrase's files, each completely or not at all; returns a line that says so.

        A wave that goes beyond full scale is scaled down to it, so that nothing clips.
        """
        output = result.phrase.output
        mel_path, picture = self._folder / "mels" / output.with_suffix(".pt"), self._folder / output.with_suffix(".png")
        line = f"{mel_path if self._save_mels else picture}: {result.mel.size(1)} frames"
        try:
            if self._save_mels:
                save_tensor(mel_path, result.mel)
            if result.wave is not None:
                wave = result.wave / max(1.0, float(result.wave.abs().max()))
                wave = fade_out(wave, self._fade_out)
                save_wav(self._folder / output, wave, sampling_rate=self._audio.sampling_rate)
                line = f"{self._folder / output}: {len(wave) / self._audio.sampling_rate:.2f} s"
        except OSError as error:
            raise InputError(f"{self._folder / output}: cannot be written ({error.strerror})") from error
        if self._draw is not None:
            self._draw(result, picture)
        self.n_written += 1
        return line
