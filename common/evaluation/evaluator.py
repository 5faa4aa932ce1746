"""Synthesize utterances with a voice, or with a vocoder from recordings' mels, and measure the audio."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import Tensor

from common.audio.mel import MelExtractor
from common.audio.wav import check_wav, load_wav, resample, save_wav
from common.errors import InputError, OutputError
from common.evaluation.items import EvaluationItem
from common.evaluation.judges import Judges
from common.evaluation.metrics import Clip, SpeechComparison, measure
from common.evaluation.options import GRIFFIN_LIM
from common.evaluation.results import RECORDING, SYNTHESIZED, Result, files_of
from common.plots import PITCH, plot_utterance, save_png
from common.synthesis.measurements import BatchTimes
from common.synthesis.speech import Speech
from common.synthesis.synthesizer import Synthesizer, warn_of_cuts
from common.synthesis.voice import Voice

LONGEST = 120.0  # s; aligning a clip of this length takes about 2 GB of memory


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
