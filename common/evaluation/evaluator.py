"""Read the utterances of an evaluation, synthesize them from text or from recordings' mels, and measure the audio."""

import hashlib
import itertools
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import torch
from matplotlib.figure import Figure
from torch import Tensor

from common.audio.mel import MelExtractor
from common.audio.wav import check_wav, load_wav, resample, save_wav
from common.config import AudioConfig
from common.errors import InputError, OptionError, OutputError
from common.evaluation.judges import Judges
from common.evaluation.metrics import Clip, SpeechComparison, measure
from common.evaluation.options import GRIFFIN_LIM, EvaluationOptions
from common.evaluation.results import RECORDING, SYNTHESIZED, Result, files_of
from common.plots import PITCH, plot_utterance, save_png
from common.synthesis.measurements import BatchTimes
from common.synthesis.phrases import load_mels_or_recordings, read_phrases
from common.synthesis.speech import Speech
from common.synthesis.synthesizer import Synthesizer, warn_of_cuts
from common.synthesis.utterances import Phrase, SynthesisInput
from common.synthesis.vocoder import AudioContract
from common.synthesis.voice import Voice
from common.text.markdown import plain_text

LONGEST = 120.0  # s; aligning a clip of this length takes about 2 GB of memory


@dataclass(frozen=True)
class EvaluationItem:
    """An utterance to synthesize, and what to compare it with."""

    phrase: Phrase  # as in the list; ``wav`` is the path of its recording, if there is one
    inputs: tuple[SynthesisInput, ...]  # one, or several for a long text
    words: str | None = None  # to recognize; None: unknown, since the text is phones

    @property
    def recording(self) -> Path | None:
        """The recording of the same words, if there is one."""
        return None if self.phrase.wav is None else Path(self.phrase.wav)

    @property
    def name(self) -> str:
        """The name of its files."""
        return str(self.phrase.output)

    def key(self, settings: str) -> str:
        """Return a digest of what its results depend on: the evaluation's ``settings``, its inputs and recording."""
        tensors = [tensor for one in self.inputs for tensor in (one.tokens, one.pitch, one.durations)]
        facts: list[object] = [settings, self.phrase.text, self.words, self.inputs[0].speaker]
        facts += [None if tensor is None else tensor.tolist() for tensor in tensors]
        if self.recording is not None:
            facts += [str(self.recording), self.recording.stat().st_size, self.recording.stat().st_mtime_ns]
        return hashlib.sha256(repr(facts).encode()).hexdigest()


def read_items(path: Path, voice: Voice, options: EvaluationOptions) -> list[EvaluationItem]:
    """Read and check a list's utterances for a voice; raises InputError, which names the line."""
    phrases = find_recordings(read_texts(path), options)
    utterances = voice.encode(phrases, dataset_path=options.dataset_path)
    parts = [tuple(inputs) for _, inputs in itertools.groupby(utterances, key=lambda one: one.phrase.output)]
    text = voice.front_end.config
    words = _read_words(phrases, options.transcripts, reads_text=text.input_type == "char" or text.g2p is not None)
    return [EvaluationItem(phrase, inputs, words.get(phrase.output)) for phrase, inputs in zip(phrases, parts)]


def read_copies(
    path: Path, options: EvaluationOptions, *, contract: AudioContract | None
) -> tuple[list[EvaluationItem], AudioConfig]:
    """Read a list's recordings with mels, and the settings of these mels."""
    phrases = find_recordings(read_texts(path, needs_text=False), options)
    if lacking := [one.where for one in phrases if one.wav is None]:
        raise InputError(f"{lacking[0]}: no recording to copy; give a column wav, or --recordings")
    inputs, audio = load_mels_or_recordings(phrases, dataset_path=options.dataset_path, contract=contract)
    words = _read_words(phrases, options.transcripts, reads_text=True)
    return [EvaluationItem(one.phrase, (one,), words.get(one.phrase.output)) for one in inputs], audio


def read_texts(path: Path, *, needs_text: bool = True) -> list[Phrase]:
    """Read a list's phrases; raises InputError if ``needs_text`` and there is no text."""
    phrases = read_phrases(path, optional=("wav",) if needs_text else ("wav", "text"))
    if needs_text and phrases[0].text is None:
        raise InputError(f"{phrases[0].where}: no text column, but an evaluation needs text")
    return phrases


def _read_words(phrases: Sequence[Phrase], transcripts: Path | None, *, reads_text: bool) -> dict[PurePosixPath, str]:
    """Return words by utterance name: those of the list, if it has text, overridden by those of ``transcripts``."""
    words = {one.output: plain_text(one.text) for one in phrases if one.text is not None} if reads_text else {}
    if transcripts is not None:
        given = {one.output: one.text or "" for one in read_texts(transcripts)}
        if given.keys().isdisjoint(one.output for one in phrases):
            raise InputError(f"{transcripts}: has no words for any utterance, such as {phrases[0].output}")
        words |= given
    return words


def find_recordings(phrases: Sequence[Phrase], options: EvaluationOptions) -> list[Phrase]:
    """Return the phrases with ``wav`` set to the absolute path of the recording (header checked), None without one."""
    folder = options.recordings
    if folder is None and options.dataset_path != Path():  # else the current folder may hold unrelated recordings
        folder = options.dataset_path
    found = []
    for phrase in phrases:
        recording = None if phrase.wav is None else options.dataset_path / phrase.wav
        if recording is None and folder is not None:
            paths = ((folder / phrase.output).with_suffix(suffix) for suffix in (".wav", ".flac"))
            recording = next(filter(Path.is_file, paths), None)
        if recording is not None:
            check_wav(recording, sampling_rate=None, where=phrase.where)
            if recording.absolute().is_relative_to(options.output.absolute()):  # it would be overwritten
                raise OptionError(f"{phrase.where}: {recording} is in --output {options.output}; give another folder")
        found.append(replace(phrase, wav=None if recording is None else str(recording.absolute())))
    if options.recordings is not None and all(one.wav is None for one in found):
        example = f"such as {phrases[0].output.with_suffix('.wav')} (--recordings)"
        raise InputError(f"{folder}: no such folder, or it has no recording of the list, {example}")
    return found


def plot_speech(made: Clip, comparison: SpeechComparison | None) -> Figure:
    """Plot a sound's mel-spectrogram and pitch; with a ``comparison``, also those of the recording aligned to it."""
    shown = {SYNTHESIZED: (made.log_mel, made.f0)}
    if comparison is not None:
        shown = {"recording, aligned": comparison.aligned_reference} | shown
    mels, pitch = ({name: torch.from_numpy(one[part]) for name, one in shown.items()} for part in (0, 1))
    return plot_utterance(mels, audio=made.audio, curves={PITCH: pitch})


@dataclass(frozen=True)
class Evaluator:
    """Synthesizes and measures single utterances."""

    folder: Path
    synthesizer: Synthesizer
    griffin_lim: Synthesizer | None  # a baseline with the same mels
    extractor: MelExtractor | None = None  # of the mels for copy synthesis; None: a voice, which is aligned first
    judges: Judges = Judges()
    voice: Voice | None = None  # None: copy synthesis

    def warm_up(self, item: EvaluationItem) -> None:
        """Synthesize once without measuring, since the first utterance of a process takes longer than later ones."""
        with suppress(InputError):  # reported when it is evaluated
            for synthesizer in filter(None, (self.synthesizer, self.griffin_lim)):
                for one in item.inputs:
                    list(synthesizer.synthesize([one]))

    def evaluate(self, item: EvaluationItem) -> Result:
        """Synthesize an utterance, write its files, and measure it; an InputError is stored in ``error``."""
        recognizer, reference = self.judges.recognizer, None
        if recognizer is not None and item.words is not None:
            reference = recognizer.normalize(item.words)
        result = Result(item.name, item.phrase.text or "", reference=reference, speaker=item.phrase.speaker or "")
        files = files_of(self.folder, item.name)
        try:
            wave = self._synthesize(result, item, self.synthesizer, files[SYNTHESIZED])
            real = None
            if item.recording is not None:
                real = self._read_recording(result, item, files[RECORDING], seconds=result.figures["duration"])
            made, comparison = self._measure(result, wave, real)
            save_png(plot_speech(made, comparison), files["plot"])
            if self.griffin_lim is not None:
                other = self._beside(result, GRIFFIN_LIM)
                self._measure(other, self._synthesize(other, item, self.griffin_lim, files[GRIFFIN_LIM]), real)
        except OutputError:  # the next one would fail too
            raise
        except InputError as error:
            result.error = str(error)
        return result

    def _beside(self, result: Result, name: str) -> Result:
        """Add an empty result for another sound of the same words, and return it."""
        result.beside.append(Result(name, result.text, reference=result.reference))
        return result.beside[-1]

    def _synthesize(self, result: Result, item: EvaluationItem, synthesizer: Synthesizer, path: Path) -> Tensor:
        """Synthesize an utterance (T,), write it to ``path``, and add its timing and recognized words to ``result``."""
        parts = [part for one in item.inputs for part in synthesizer.synthesize([one])]
        speech, rate = Speech(tuple(parts), synthesizer.audio), self.synthesizer.audio.sampling_rate
        if synthesizer is self.synthesizer:
            warn_of_cuts(parts)
        result.cut = any(part.is_cut for part in parts)
        save_wav(path, speech.wave, sampling_rate=rate)
        duration = len(speech.wave) / rate
        work = BatchTimes.of(speech.parts, hop_length=synthesizer.audio.hop_length).latency
        result.figures |= {"work": work, "duration": duration}
        if duration:
            result.figures["real_time_factor"] = work / duration
        wave = load_wav(path, sampling_rate=rate)
        self.judges.hear(result, wave, rate)
        return wave

    def _read_recording(self, result: Result, item: EvaluationItem, path: Path, *, seconds: float) -> Clip:
        """Judge the recording; return it at the lower sampling rate of both sounds, the other lasting ``seconds``."""
        assert item.recording is not None
        result.recording = str(item.recording)
        where = item.phrase.where
        rate = check_wav(item.recording, sampling_rate=None, where=where).sampling_rate
        recorded = load_wav(item.recording, sampling_rate=rate, where=where)
        save_wav(path, recorded, sampling_rate=rate)
        self.judges.hear(self._beside(result, RECORDING), recorded, rate)
        seconds = max(len(recorded) / rate, seconds)
        if self.extractor is None and seconds > LONGEST:
            raise InputError(f"{where}: {seconds:.0f} s, too long to align; expected at most {LONGEST:.0f} s")
        lower = min(rate, self.synthesizer.audio.sampling_rate)
        return Clip(resample(recorded, ratio=lower / rate).numpy(), lower)

    def _measure(self, result: Result, wave: Tensor, real: Clip | None) -> tuple[Clip, SpeechComparison | None]:
        """Add the figures of a synthesized wave (T,) compared with its recording, if any; return what to plot."""
        rate = self.synthesizer.audio.sampling_rate if real is None else real.sampling_rate
        made = Clip(resample(wave, ratio=rate / self.synthesizer.audio.sampling_rate).numpy(), rate)
        if real is None:
            return made, None
        figures, comparison = measure(made, real, extractor=self.extractor)
        result.add(figures)
        return comparison.synthesized, comparison
