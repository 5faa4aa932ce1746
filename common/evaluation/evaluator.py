"""Synthesizes utterances by a voice, or by a vocoder of recordings' own mels, and measures what comes out."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from common.audio import MelExtractor, check_wav, load_wav, resample, save_wav
from common.errors import InputError, OutputError
from common.evaluation.items import EvaluationItem
from common.evaluation.metrics import Clip, SpeechComparison, measure
from common.evaluation.options import GRIFFIN_LIM
from common.evaluation.packages import Pocketsphinx
from common.evaluation.plots import plot_speech
from common.evaluation.results import RECORDING, SYNTHESIZED, Result, files_of
from common.files import write_text
from common.pages.charts import to_svg
from common.recognition import Recognizer, error_counts
from common.synthesis import Vocoder, Voice
from common.synthesis.synthesizer import CUT, NOT_SPOKEN
from common.synthesis.utterances import mel_of, told_pitch
from common.timing import Stopwatch

LONGEST = 120.0  # s of a clip that is aligned, in about 2 GB of memory

# The sound (T,) of an utterance; seconds of work, and whether the voice was stopped, are stored in the result.
Synthesize = Callable[[EvaluationItem, Result], Tensor]


def speak(voice: Voice, item: EvaluationItem, result: Result) -> Tensor:
    """Speak an utterance."""
    speech = voice.speak_inputs(item.inputs)
    result.figures["work"] = sum(times.latency for times in voice.times[-len(item.inputs) :])
    result.cut, result.silent = (voice.failures.get(item.phrase) == reason for reason in (CUT, NOT_SPOKEN))
    return speech.wave


@torch.inference_mode()
def copy(vocoder: Vocoder, device: torch.device, item: EvaluationItem, result: Result) -> Tensor:
    """Make sound of a recording's mel; ``device`` is the vocoder's."""
    (one,) = item.inputs
    mel = mel_of(one)[None].to(device)
    given = None if one.frame_pitch is None else one.frame_pitch[None].to(device)
    watch = Stopwatch(device)
    with watch.running():
        wave = vocoder.speak(mel, [mel.size(2)], **told_pitch(given))[0]
    result.figures["work"] = watch.seconds
    return wave.cpu()


@dataclass(frozen=True)
class Evaluator:
    """Synthesizes and measures single utterances."""

    folder: Path
    synthesize: Synthesize
    griffin_lim: Synthesize | None  # beside it
    sampling_rate: int  # Hz, of synthesized sound
    extractor: MelExtractor | None = None  # of the mels that copies are made of; None: a voice, compared by alignment
    recognizer: Recognizer | Pocketsphinx | None = None  # None: nothing is transcribed

    def warm_up(self, item: EvaluationItem) -> None:
        """Synthesize once without measuring: the first utterance of a process takes longer than later ones."""
        with suppress(InputError):  # reported when it is evaluated
            for synthesize in filter(None, (self.synthesize, self.griffin_lim)):
                synthesize(item, Result(item.name, item.text))

    def evaluate(self, item: EvaluationItem) -> Result:
        """Synthesize an utterance, write its files, and measure it; what goes wrong is in the result's ``error``."""
        result = Result(item.name, item.text, item.key)
        try:
            self._evaluate(result, item)
        except OutputError:  # the next one would fail too
            raise
        except InputError as error:
            result.error = str(error)
        return result

    def _evaluate(self, result: Result, item: EvaluationItem) -> None:
        if self.recognizer is not None and item.words is not None:
            result.reference = self.recognizer.normalize(item.words)
        files = files_of(self.folder, item.name)
        wave = self._synthesize(result, item, self.synthesize, files[SYNTHESIZED])
        real = None
        if item.recording is not None:
            real = self._read_recording(result, item, files[RECORDING], seconds=len(wave) / self.sampling_rate)
        made, comparison = self._measure(result, wave, real)
        write_text(files["plot"], to_svg(plot_speech(made, comparison)))
        if self.griffin_lim is not None:
            other = Result(GRIFFIN_LIM, item.text, reference=result.reference)
            result.beside.append(other)
            self._measure(other, self._synthesize(other, item, self.griffin_lim, files[GRIFFIN_LIM]), real)

    def _synthesize(self, result: Result, item: EvaluationItem, synthesize: Synthesize, path: Path) -> Tensor:
        """The sound (T,) of an utterance, written to ``path``, whose times and words go to ``result``."""
        wave = synthesize(item, result)
        save_wav(path, wave, sampling_rate=self.sampling_rate)
        duration, work = len(wave) / self.sampling_rate, result.figures["work"]
        result.figures["duration"] = duration
        if duration and work:
            result.figures |= {"rtf": duration / work, "real_time_factor": work / duration}
        if self.extractor is None:  # Copies are compared as the vocoder makes them, speech as its file has it.
            wave = load_wav(path, sampling_rate=self.sampling_rate)
        self._transcribe(result, wave, self.sampling_rate)
        return wave

    def _read_recording(self, result: Result, item: EvaluationItem, path: Path, *, seconds: float) -> Clip:
        """The recording in the band that synthesized sound of ``seconds`` has too, with figures of its own."""
        assert item.recording is not None
        result.recording = str(item.recording)
        rate = check_wav(item.recording, sampling_rate=None, where=item.where).sampling_rate
        recorded = load_wav(item.recording, sampling_rate=rate, where=item.where)
        save_wav(path, recorded, sampling_rate=rate)
        own = Result(RECORDING, item.text, reference=result.reference)
        self._transcribe(own, recorded, rate)
        result.beside.append(own)
        seconds = max(len(recorded) / rate, seconds)
        if self.extractor is None and seconds > LONGEST:
            raise InputError(f"{item.where}: {seconds:.0f} s, too long to align; expected at most {LONGEST:.0f} s")
        lower = min(rate, self.sampling_rate)
        real = Clip(resample(recorded, ratio=lower / rate).numpy(), lower)
        own.add(measure(real, None if self.extractor is None else real, extractor=self.extractor)[0])
        return real

    def _transcribe(self, result: Result, wave: Tensor, rate: int) -> None:
        """Add the transcript of a wave (T,), and its errors if there is a reference."""
        if self.recognizer is None:
            return
        result.heard = self.recognizer.transcribe(wave, sampling_rate=rate)[0].text
        if result.reference is not None:
            errors = error_counts([result.reference], [result.heard])
            result.figures |= {"wer": errors.wer, "n_words": max(errors.n_words, 1)}
            result.figures |= {"cer": errors.cer, "n_chars": max(errors.n_chars, 1)}

    def _measure(self, result: Result, wave: Tensor, real: Clip | None) -> tuple[Clip, SpeechComparison | None]:
        """Add the figures of a synthesized wave (T,) beside its recording, if there is one; what is plotted of it."""
        rate = self.sampling_rate if real is None else real.sampling_rate
        made = Clip(resample(wave, ratio=rate / self.sampling_rate).numpy(), rate)
        figures, comparison = measure(made, real, extractor=self.extractor)
        result.add(figures)
        return made if comparison is None else comparison.synthesized, comparison
