"""From a list of phrases to mels and sound: utterances checked before the first is spoken, batches of like length."""

import itertools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from common.audio.wav import save_wav
from common.config import AudioConfig, to_plain
from common.errors import InputError
from common.files import load_tensor, save_tensor, write_json
from common.precision import Autocast
from common.progress import progress
from common.signals import StopSignals
from common.synthesis.controls import Controls, MelOutput
from common.synthesis.measurements import BatchTimes
from common.synthesis.phrases import Phrase
from common.synthesis.vocoder import Vocoder
from common.text.arpabet import utterance_draws
from common.text.front_end import TextFrontEnd
from common.timing import Stopwatch


@dataclass(frozen=True)
class Utterance:
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
        return self.mel.size(1) if self.tokens is None else len(self.tokens)


@dataclass(frozen=True)
class Spoken:
    """One utterance's result, on the CPU."""

    phrase: Phrase
    mel: Tensor  # (n_mels, F) float32
    wave: Tensor | None  # (F * hop,) float32 in about [-1, 1]; None without a vocoder


class Generator(Protocol):
    """What the first network of a text-to-mel package offers, and its TorchScript."""

    def infer(self, tokens: Tensor, lengths: Tensor, controls: Controls | None = None) -> MelOutput:
        """tokens (B, L), lengths (B,) -> mel (B, n_mels, F) with its lengths (B,)."""


def encode_phrases(
    phrases: Sequence[Phrase],
    front_end: TextFrontEnd,
    *,
    dataset_path: Path,
    speaker_ids: Callable[[str, str], int],
    default_speaker: int,
    seed: int | None = None,
) -> list[Utterance]:
    """Utterances to be spoken from text, with their pitch and durations where the list gives them.

    ``speaker_ids(name, where)`` turns the list's speaker column into an id. With a ``seed``, it is drawn which words
    become phones, where the front end knows them; else all do.

    Raises:
        InputError: the first phrase that cannot be spoken, by file and line.
    """
    utterances = []
    for index, phrase in enumerate(phrases):
        if phrase.text is None:
            raise InputError(f"{phrase.where}: no text column, which a text-to-mel model needs")
        draw = None if seed is None else utterance_draws(seed=seed, epoch=0, index=index)
        tokens = torch.tensor(front_end.encode(phrase.text, where=phrase.where, draw=draw))
        values = {
            name: _load_per_token(dataset_path / path, len(tokens), where=phrase.where)
            for name, path in (("pitch", phrase.pitch), ("durations", phrase.duration))
            if path is not None
        }
        if "durations" in values and values["durations"].min() < 0:
            raise InputError(f"{dataset_path / phrase.duration}: negative durations ({phrase.where})")
        speaker = default_speaker if phrase.speaker is None else speaker_ids(phrase.speaker, phrase.where)
        utterances.append(Utterance(phrase, tokens=tokens, speaker=speaker, **values))
    return utterances


def _load_per_token(path: Path, n_tokens: int, *, where: str) -> Tensor:
    values = load_tensor(path, where=where)
    if values.shape != (n_tokens,):
        raise InputError(f"{path}: shape {tuple(values.shape)}, expected ({n_tokens},), one value a symbol ({where})")
    if not torch.isfinite(values).all():
        raise InputError(f"{path}: holds values that are not finite ({where})")
    return values.float()


def plan_batches(utterances: Sequence[Utterance], batch_size: int) -> list[list[Utterance]]:
    """Batches of like length, the longest first: what does not fit into memory shows at once."""
    ordered = sorted(utterances, key=lambda utterance: -utterance.length)  # stable: equal lengths keep their order
    return [ordered[start : start + batch_size] for start in range(0, len(ordered), batch_size)]


class Synthesizer:
    """Speaks batches: the generator makes mels, unless they are given, and the vocoder makes waves of them."""

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
        self.unfinished: dict[Phrase, int] = {}  # that the generator had to stop -> the frames it had made by then
        self._generator = generator
        self._vocoder = vocoder
        self._controls = controls
        self._hop_length = audio.hop_length
        self._device = device
        self._autocast = autocast

    def speak(self, batch: Sequence[Utterance], *, keep: Callable[[Spoken], None]) -> BatchTimes:
        """Speak one batch, and hand each utterance to ``keep`` as soon as it is done.

        Raises:
            InputError: a mel or a wave is not finite; names the phrase.
        """
        watch = Stopwatch(self._device)
        mel, lengths = self._mels(batch, watch)
        generating = watch.seconds if self._generator is not None else None
        mels = [one[:, :length] for one, length in zip(mel.float().cpu(), lengths)]
        for utterance, one in zip(batch, mels):
            _check_finite(one, "mel-spectrogram", utterance.phrase)
        watch = Stopwatch(self._device)
        if self._vocoder is None:
            for utterance, one in zip(batch, mels):
                keep(Spoken(utterance.phrase, one, None))
        else:
            size = self._vocoder.max_batch or len(batch)
            for start in range(0, len(batch), size):
                part = slice(start, start + size)
                with watch.running():
                    waves = self._vocoder.speak(mel[part, :, : max(lengths[part])], lengths[part])
                for utterance, one, wave in zip(batch[part], mels[part], waves):
                    wave = wave.cpu()
                    _check_finite(wave, "sound", utterance.phrase)
                    keep(Spoken(utterance.phrase, one, wave))
        n_frames = sum(lengths)
        return BatchTimes(
            n_utterances=len(batch),
            n_tokens=sum(len(utterance.tokens) for utterance in batch if utterance.tokens is not None),
            n_frames=n_frames,
            n_samples=n_frames * self._hop_length,
            generator=generating,
            vocoder=None if self._vocoder is None else watch.seconds,
        )

    @torch.inference_mode()
    def _mels(self, batch: Sequence[Utterance], watch: Stopwatch) -> tuple[Tensor, list[int]]:
        """mel (B, n_mels, F) on the device and lengths B frames; the time of making them is added to ``watch``."""
        if self._generator is None:
            padded = _pad([utterance.mel.t() for utterance in batch]).transpose(1, 2)
            return padded.to(self._device), [utterance.mel.size(1) for utterance in batch]
        tokens = _pad([utterance.tokens for utterance in batch]).to(self._device)
        lengths = torch.tensor([len(utterance.tokens) for utterance in batch], device=self._device)
        controls = replace(
            self._controls,
            speaker=torch.tensor([utterance.speaker for utterance in batch], device=self._device),
            pitch=self._pad_given([utterance.pitch for utterance in batch]),
            durations=self._pad_given([utterance.durations for utterance in batch]),
        )
        with watch.running(), self._autocast():
            output = self._generator.infer(tokens, lengths, controls)
        n_frames = output.lengths.tolist()
        if output.finished is not None:
            for utterance, finished, length in zip(batch, output.finished.tolist(), n_frames):
                self._warn_unless(finished, utterance.phrase, length)
        return output.mel, n_frames

    def _warn_unless(self, finished: bool, phrase: Phrase, n_frames: int) -> None:
        """Name a phrase that was cut; once, however often it is spoken."""
        if not finished and phrase not in self.unfinished:
            self.unfinished[phrase] = n_frames
            print(
                f"warning: {phrase.where} ({phrase.output}): the voice did not end it; cut after {n_frames} frames "
                "(--max-decoder-steps)",
                file=sys.stderr,
            )

    def _pad_given(self, rows: list[Tensor | None]) -> Tensor | None:
        """A list has a column for all of its utterances, or for none."""
        return None if rows[0] is None else _pad(rows).to(self._device)


def _check_finite(made: Tensor, what: str, phrase: Phrase) -> None:
    if not torch.isfinite(made).all():
        raise InputError(
            f"{phrase.where}: the {what} made for it is not finite; try --amp-dtype bfloat16, or leave out --amp"
        )


def _pad(rows: list[Tensor]) -> Tensor:
    return pad_sequence(rows, batch_first=True)


def speak_all(
    batches: Sequence[Sequence[Utterance]],
    synthesizer: Synthesizer,
    *,
    warmup_steps: int,
    repeats: int,
    write: Callable[[Spoken], None] | None,
    measured: Callable[[BatchTimes], None],
) -> None:
    """Speak every batch ``repeats`` times, after ``warmup_steps`` batches that do not count.

    ``write`` is given each utterance the first time, ``measured`` the times of each batch.

    Raises:
        SystemExit: a signal asked to stop; the phrase that was being spoken then is finished.
    """
    total = repeats * sum(len(batch) for batch in batches)
    with StopSignals() as signals, progress(total=total, desc="speaking", unit="phrase") as bar:

        def stop_if_asked(_: Spoken) -> None:
            if signals.received is not None:
                raise SystemExit(128 + signals.received)

        def count(spoken: Spoken) -> None:
            bar.update()
            stop_if_asked(spoken)

        def write_and_count(spoken: Spoken) -> None:
            write(spoken)
            count(spoken)

        for batch in itertools.islice(itertools.cycle(batches), warmup_steps):
            synthesizer.speak(batch, keep=stop_if_asked)
        for repeat in range(repeats):
            keep = write_and_count if repeat == 0 and write is not None else count
            for batch in batches:
                measured(synthesizer.speak(batch, keep=keep))


def fade_out(wave: Tensor, n_samples: int) -> Tensor:
    """wave (T,) with its last ``n_samples`` falling linearly to silence; all of a shorter wave falls."""
    n_samples = min(n_samples, len(wave))
    if n_samples == 0:
        return wave
    faded = wave.clone()
    faded[-n_samples:] *= torch.linspace(1, 0, n_samples)
    return faded


class OutputFolder:
    """Files of spoken utterances: ``<output>.wav``, and ``mels/<output>.pt`` when mels are kept."""

    def __init__(self, folder: Path, *, audio: AudioConfig, fade_out_frames: int, save_mels: bool) -> None:
        self.n_written = 0  # utterances
        self._folder = folder
        self._audio = audio
        self._fade_out = fade_out_frames * audio.hop_length  # samples
        self._save_mels = save_mels
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if save_mels:
                write_json(folder / "mels" / "audio.json", to_plain(audio))
        except OSError as error:
            raise InputError(f"{folder}: cannot write there ({error.strerror}); choose another --output") from error

    def write(self, spoken: Spoken) -> None:
        """Write one utterance's files, each whole or not at all.

        A wave that goes beyond full scale is scaled down to it, so that nothing clips.
        """
        output = spoken.phrase.output
        try:
            if self._save_mels:
                save_tensor(self._folder / "mels" / output.with_suffix(".pt"), spoken.mel)
            if spoken.wave is not None:
                wave = spoken.wave / max(1.0, float(spoken.wave.abs().max()))
                wave = fade_out(wave, self._fade_out)
                save_wav(self._folder / output, wave, sampling_rate=self._audio.sampling_rate)
        except OSError as error:
            raise InputError(f"{self._folder / output}: cannot be written ({error.strerror})") from error
        self.n_written += 1
