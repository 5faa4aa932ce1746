"""Synthesizes a list utterance by utterance and measures each; results are kept, whatever happens to later ones."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from matplotlib.figure import Figure
from torch import Tensor

from common.audio import check_wav, load_wav, resample, save_wav
from common.errors import InputError, OutputError
from common.evaluation.items import EvaluationItem
from common.evaluation.metrics import SpeechFrames, compare_speech_frames, speech_frames
from common.evaluation.packages import PACKAGES, Pocketsphinx, installed
from common.evaluation.page import save_page
from common.evaluation.plots import plot_alone, plot_comparison
from common.evaluation.results import (
    GRIFFIN_LIM,
    JOURNAL,
    PAGE,
    RECORDING,
    RESULTS,
    WAVES,
    Extent,
    Journal,
    Result,
    averages,
    averages_beside,
    columns_of,
    figures_of,
    files_of,
    save_results,
    table_row,
)
from common.evaluation.sound import measure_sound
from common.files import check_apart, write_text, writing
from common.pages.charts import to_svg
from common.progress import print_line
from common.recognition import Recognizer, error_counts
from common.signals import StopSignals
from common.synthesis import OutputFolder, Speech, Voice

_LONGEST = 120.0  # s of a clip that is aligned, in about 2 GB of memory
AnyRecognizer = Recognizer | Pocketsphinx
Clip = tuple[np.ndarray, SpeechFrames]  # a wave (T,) and its frames


def check_files(
    folder: Path, items: Sequence[EvaluationItem], *, dataset_path: Path, read: Sequence[tuple[str, Path]]
) -> None:
    """Refuse by OptionError an evaluation in ``folder`` that would write a file it reads: of the items, or ``read``.

    ``read`` is as `check_apart` takes it.
    """
    written = [("--output: the file", folder / name) for name in (JOURNAL, RESULTS, PAGE)]
    written += [(f"{one.where}: the file", path) for one in items for path in files_of(folder, one.name).values()]
    own = [(one.where, path) for one in items for path in one.phrase.files(dataset_path)]
    own += [(f"the recording of {one.where}", one.recording) for one in items if one.recording is not None]
    check_apart(written, [*read, *own])


class AnyEvaluator(Protocol):
    """What `run_evaluation` needs: `Evaluator`, or `common.evaluation.copies.CopyEvaluator`."""

    folder: Path
    recognizer: AnyRecognizer | None
    measures: frozenset[str]  # what can be measured beside recordings, as `Column.needs` has it

    def warm_up(self, item: EvaluationItem) -> None:
        """Synthesize once without measuring: the first utterance of a process takes longer than later ones."""

    def evaluate(self, item: EvaluationItem) -> Result:
        """Synthesize an utterance, write its files, and measure it; what goes wrong is in the result's ``error``."""


class Evaluator:
    """Synthesizes and measures single utterances of a voice."""

    measures = frozenset({"recordings", "alignment"})

    def __init__(self, voice: Voice, folder: Path, *, recognizer: AnyRecognizer | None, beside: Voice | None) -> None:
        """``beside`` is the voice through Griffin-Lim; without a ``recognizer`` nothing is transcribed."""
        self.folder = folder
        self._beside = beside
        self.recognizer = recognizer
        self._voice = voice
        self._rate = voice.sampling_rate
        self._output = OutputFolder(folder / WAVES, audio=voice.audio, join=voice.join)
        self._output.prepare()

    def warm_up(self, item: EvaluationItem) -> None:
        """Speak one utterance without measuring, as a process's first utterance takes longer."""
        with suppress(InputError):  # reported when it is evaluated
            self._voice.speak_inputs(item.inputs)

    def evaluate(self, item: EvaluationItem) -> Result:
        """Speak an utterance, write its files, and measure it; errors are in the result's ``error``."""
        result = Result(item.name, item.text, item.key)
        try:
            synthesizer = self._voice.synthesizer
            speech, work = _speak(self._voice, item)
            self._output.write(speech, item.phrase.output)
            cut, silent = (item.phrase in phrases for phrases in (synthesizer.unfinished, synthesizer.silent))
            result = replace(result, duration=speech.duration, work=work, cut=cut, silent=silent)
            wave = load_wav(files_of(self.folder, item.name)["synthesized"], sampling_rate=self._rate)
            if self.recognizer is not None and item.words is not None:
                result = replace(result, reference=self.recognizer.normalize(item.words))
            result = transcribed(result, wave, self._rate, result.reference, by=self.recognizer)
            result, real, common = self._compare(item, result, wave)
            if self._beside is not None:
                other = self._through_griffin_lim(self._beside, item, result, real, sampling_rate=common)
                result = replace(result, beside=(*result.beside, other))
            return result
        except OutputError:  # the next one would fail too
            raise
        except InputError as error:
            return replace(result, error=str(error))

    def _through_griffin_lim(
        self, voice: Voice, item: EvaluationItem, result: Result, real: Clip | None, *, sampling_rate: int
    ) -> Result:
        """The figures of an utterance whose sound Griffin-Lim makes, beside its recording as `_compare` gives it."""
        speech, work = _speak(voice, item)
        save_wav(files_of(self.folder, item.name)[GRIFFIN_LIM], speech.wave, sampling_rate=self._rate)
        other = Result(GRIFFIN_LIM, item.text, reference=result.reference, duration=speech.duration, work=work)
        other = transcribed(other, speech.wave, self._rate, result.reference, by=self.recognizer)
        samples = resample(speech.wave, ratio=sampling_rate / self._rate).numpy()
        frames = speech_frames(samples, sampling_rate=sampling_rate)
        return replace(other, sound=measure_sound(samples, frames, sampling_rate=sampling_rate, recording=real))

    def _compare(self, item: EvaluationItem, result: Result, wave: Tensor) -> tuple[Result, Clip | None, int]:
        """Compare with the recording, if there is one, and plot; also return that, and the rate of the comparison."""
        files = files_of(self.folder, item.name)
        if item.recording is None:
            frames = speech_frames(wave.numpy(), sampling_rate=self._rate)
            save_plot(plot_alone(frames), files["plot"])
            sound = measure_sound(wave.numpy(), frames, sampling_rate=self._rate, recording=None)
            return replace(result, sound=sound), None, self._rate
        result = replace(result, recording=str(item.recording))
        rate = check_wav(item.recording, sampling_rate=None, where=item.where).sampling_rate
        recorded = load_wav(item.recording, sampling_rate=rate, where=item.where)
        save_wav(files["recorded"], recorded, sampling_rate=rate)
        own = transcribed(Result(RECORDING, item.text), recorded, rate, result.reference, by=self.recognizer)
        result = replace(result, beside=(own,))
        seconds = max(len(recorded) / rate, len(wave) / self._rate)
        if seconds > _LONGEST:
            raise InputError(
                f"{item.where}: a clip of {seconds:.0f} s, too long to align; the longest is {_LONGEST:.0f} s"
            )
        common = min(rate, self._rate)  # compared in the band that both can hold
        waves = [resample(one, ratio=common / its).numpy() for one, its in ((recorded, rate), (wave, self._rate))]
        comparison = compare_speech_frames(*waves, sampling_rate=common)
        save_plot(plot_comparison(comparison), files["plot"])
        real = waves[0], comparison.reference
        own = replace(own, sound=measure_sound(*real, sampling_rate=common, recording=None))
        sound = measure_sound(waves[1], comparison.synthesized, sampling_rate=common, recording=real)
        return replace(result, distance=comparison.distance, sound=sound, beside=(own,)), real, common


def _speak(voice: Voice, item: EvaluationItem) -> tuple[Speech, float]:
    """An utterance as ``voice`` speaks it, and the seconds of work."""
    speech = voice.speak_inputs(item.inputs)
    return speech, sum(times.latency for times in voice.synthesizer.times[-len(item.inputs) :])


def transcribed(result: Result, wave: Tensor, rate: int, reference: str | None, *, by: AnyRecognizer | None) -> Result:
    """A result with the transcript of its wave (T,), and with its errors if there is a ``reference``."""
    if by is None:
        return result
    text = by.transcribe(wave, sampling_rate=rate)[0].text
    return replace(result, heard=text, errors=None if reference is None else error_counts([reference], [text]))


def save_plot(figure: Figure, path: Path) -> None:
    """Write a plot as SVG."""
    write_text(path, to_svg(figure))


def run_evaluation(
    items: Sequence[EvaluationItem],
    evaluator: AnyEvaluator,
    *,
    settings: dict[str, Any],
    facts: dict[str, str],
    fresh: bool,
) -> int:
    """Evaluate ``items``, resuming an earlier run of the same ``settings`` unless ``fresh``; the exit status.

    The table goes to stdout, the JSON and the page with ``facts`` into the evaluator's folder. After a signal the
    current utterance is finished, and what there is so far is reported.
    """
    folder = evaluator.folder
    journal = Journal(folder / JOURNAL, settings=settings)
    # Results of an earlier run without an error, of the same items, whose files are there.
    keys = {item.name: item.key for item in items}
    earlier = [] if fresh else [one for one in journal.read() if one.error is None and keys.get(one.name) == one.key]
    kept = {one.name: one for one in earlier if all(path.is_file() for path in one.files(folder))}
    journal.start(list(kept.values()))
    if kept:
        print(f"{len(kept)} of {len(items)} utterances are from an earlier run; --fresh measures them again")
    available = set(evaluator.measures) if any(item.recording is not None for item in items) else set()
    if evaluator.recognizer is not None and any(item.words is not None for item in items):
        available.add("words")
    columns = columns_of(available - (PACKAGES.keys() - installed()))

    def show(result: Result) -> None:
        row = table_row(columns, result.name.removesuffix(".wav"), figures_of(result))
        print_line(f"{row}  {result.error}" if result.error else row)
        for one in result.beside:
            print_line(table_row(columns, f"  {one.name}", figures_of(one)))

    print_line(table_row(columns, "utterance"))
    for result in kept.values():
        show(result)
    results = []
    new = [item for item in items if item.name not in kept]
    with StopSignals() as signals:
        if new:
            evaluator.warm_up(new[0])
        for item in items:
            if item.name in kept:
                results.append(kept[item.name])
            elif signals.received is None:
                with writing(folder, "; what is finished is kept: make room, and start it again to resume"):
                    results.append(evaluator.evaluate(item))
                    journal.add(results[-1])
                show(results[-1])
    extent = Extent(len(results), len(items))
    print_line(table_row(columns, str(extent), averages(results)))
    for name, means in averages_beside(results).items():
        print_line(table_row(columns, f"  {name}", means))
    save_results(folder / RESULTS, results, extent=extent, settings=facts | settings)
    title = " through ".join(Path(facts[role]).name for role in ("generator", "vocoder") if role in facts)
    save_page(folder, results, extent=extent, title=title, facts=facts | settings["options"])
    print_line(f"report: {folder / PAGE}; figures: {folder / RESULTS}")
    n_failed = sum(result.error is not None for result in results)
    if n_failed:
        print_line(f"{n_failed} of {len(results)} utterances could not be evaluated completely")
    if signals.received is not None and extent.stopped:
        print_line(f"stopped after {len(results)} of {len(items)} utterances; start it again to resume")
        return 128 + int(signals.received)
    return 1 if n_failed else 0
