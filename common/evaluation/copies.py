"""Copy synthesis: a vocoder and Griffin-Lim make sound of recordings' own mels, which is measured beside them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from common.audio import MelExtractor, load_wav, save_wav
from common.config import AudioConfig
from common.errors import InputError, OutputError
from common.evaluation.evaluator import AnyRecognizer, Clip, save_plot, transcribed
from common.evaluation.items import EvaluationItem, find_recordings, read_texts, read_transcripts
from common.evaluation.metrics import SpeechComparison, SpeechFrames, speech_frames
from common.evaluation.plots import plot_comparison
from common.evaluation.results import GRIFFIN_LIM, RECORDING, Result, files_of
from common.evaluation.sound import measure_copy
from common.synthesis import AudioContract, GriffinLimVocoder, Vocoder, load_mels_or_recordings, with_frame_pitch
from common.synthesis.phrases import warn_unread
from common.synthesis.utterances import mel_of, told_pitch
from common.text import plain_text
from common.timing import Stopwatch


def read_copies(
    path: Path,
    *,
    dataset_path: Path,
    recordings: Path | None,
    transcripts: Path | None,
    contract: AudioContract | None,
    takes_pitch: bool,
    needs_words: bool,
) -> tuple[list[EvaluationItem], AudioConfig]:
    """A list's recordings with their mels and, as far as they are known, words; and the description of the mels.

    Arguments as those of `read_items` and `load_mels_or_recordings`.

    Raises:
        InputError: the list, or a recording, is missing or cannot be used; names the line.
    """
    phrases = read_texts(path, needs_text=False)
    found = find_recordings(path, phrases, dataset_path=dataset_path, recordings=recordings)
    for phrase, recording in zip(phrases, found):
        if recording is None:
            raise InputError(f"{phrase.where}: no recording to copy; give a column wav, or --recordings")
    given = [replace(phrase, wav=str(Path(str(clip)).absolute())) for phrase, clip in zip(phrases, found)]
    inputs, audio = load_mels_or_recordings(given, dataset_path=dataset_path, contract=contract)
    if takes_pitch:
        inputs = with_frame_pitch(inputs, dataset_path=dataset_path)
    warn_unread(phrases, read=("text", "wav", *["pitch"] * takes_pitch), source=str(path))
    words = {one.output: plain_text(one.text) for one in phrases if one.text is not None}
    words |= read_transcripts(transcripts, phrases, needs_words=needs_words)
    items = [
        EvaluationItem((one,), phrase.text or "", words.get(phrase.output), recording)
        for one, phrase, recording in zip(inputs, phrases, found)
    ]
    return items, audio


class CopyEvaluator:
    """Copies single recordings and measures the copies, as `Evaluator` does it for a voice."""

    def __init__(
        self,
        vocoder: Vocoder,
        folder: Path,
        *,
        beside: GriffinLimVocoder | None,
        recognizer: AnyRecognizer | None,
        device: torch.device,
    ) -> None:
        """Results are those of ``vocoder``, and ``beside`` it of Griffin-Lim; ``device`` is the vocoder's."""
        self.folder = folder
        self.recognizer = recognizer
        self.measures = frozenset({"recordings", "copies", "pesq", "pystoi"})
        self._vocoder = vocoder
        self._beside = beside
        self._device = device
        self._extractor = MelExtractor(vocoder.audio)

    def warm_up(self, item: EvaluationItem) -> None:
        """Copy one recording without measuring, as a process's first utterance takes longer."""
        for vocoder in filter(None, (self._vocoder, self._beside)):
            self._copy(item, vocoder)

    def evaluate(self, item: EvaluationItem) -> Result:
        """Copy a recording, write its files, and measure the copy; errors are in the result's ``error``."""
        result = Result(item.name, item.text, item.key, recording=str(item.recording))
        if self.recognizer is not None and item.words is not None:
            result = replace(result, reference=self.recognizer.normalize(item.words))
        files, rate = files_of(self.folder, item.name), self._vocoder.audio.sampling_rate
        try:
            assert item.recording is not None, "only recordings are copied"
            recorded = load_wav(item.recording, sampling_rate=rate, where=item.where)
            save_wav(files["recorded"], recorded, sampling_rate=rate)
            own = transcribed(Result(RECORDING, item.text), recorded, rate, result.reference, by=self.recognizer)
            result = replace(result, beside=(own,))
            real = recorded.numpy(), speech_frames(recorded.numpy(), sampling_rate=rate)
            own = replace(own, sound=measure_copy(*real, real, extractor=self._extractor))
            result = replace(result, beside=(own,))
            if self._beside is not None:
                other = replace(result, name=GRIFFIN_LIM, beside=())
                other, _ = self._measured(other, item, self._beside, real, files[GRIFFIN_LIM])
                result = replace(result, beside=(own, other))
            result, frames = self._measured(result, item, self._vocoder, real, files["synthesized"])
            pairs = np.arange(len(frames.f0))[:, None].repeat(2, axis=1)
            save_plot(plot_comparison(SpeechComparison(real[1], frames, pairs)), files["plot"])
            return result
        except OutputError:  # the next one would fail too
            raise
        except InputError as error:
            return replace(result, error=str(error))

    def _measured(
        self, result: Result, item: EvaluationItem, vocoder: Vocoder, real: Clip, path: Path
    ) -> tuple[Result, SpeechFrames]:
        """A result with the figures of the vocoder's copy of clip ``real``, whose file is ``path``; and its frames."""
        rate = vocoder.audio.sampling_rate
        wave, seconds = self._copy(item, vocoder)
        save_wav(path, wave, sampling_rate=rate)
        result = replace(result, duration=len(wave) / rate, work=seconds)
        result = transcribed(result, wave, rate, result.reference, by=self.recognizer)
        samples = F.pad(wave, (0, max(len(real[0]) - len(wave), 0)))[: len(real[0])].numpy()
        frames = speech_frames(samples, sampling_rate=rate)
        return replace(result, sound=measure_copy(samples, frames, real, extractor=self._extractor)), frames

    @torch.inference_mode()
    def _copy(self, item: EvaluationItem, vocoder: Vocoder) -> tuple[Tensor, float]:
        """The sound (T,) that a vocoder makes of a recording's mel, and the seconds it took."""
        (one,) = item.inputs
        mel = mel_of(one)[None].to(self._device)
        given = None if one.frame_pitch is None else one.frame_pitch[None].to(self._device)
        watch = Stopwatch(self._device)
        with watch.running():
            wave = vocoder.speak(mel, [mel.size(2)], **told_pitch(given))[0]
        return wave.cpu(), watch.seconds
