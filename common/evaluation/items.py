"""The utterances of an evaluation: what to synthesize, which words to recognize, and recordings to compare with."""

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from common.audio.wav import check_wav
from common.config import AudioConfig
from common.errors import InputError, OptionError
from common.evaluation.options import EvaluationOptions
from common.synthesis.phrases import load_mels_or_recordings, read_phrases
from common.synthesis.utterances import Phrase, SynthesisInput
from common.synthesis.vocoder import AudioContract
from common.synthesis.voice import Voice
from common.text.markdown import plain_text


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
        names = [phrase.output.with_suffix(one) for one in (".wav", ".flac")] if folder is not None else []
        paths = [path for name in names if (path := Path(folder or "") / name).is_file()]
        recording = options.dataset_path / phrase.wav if phrase.wav is not None else next(iter(paths), None)
        if recording is not None:
            check_wav(recording, sampling_rate=None, where=phrase.where)
            if recording.absolute().is_relative_to(options.output.absolute()):  # it would be overwritten
                raise OptionError(f"{phrase.where}: {recording} is in --output {options.output}; give another folder")
        found.append(replace(phrase, wav=None if recording is None else str(recording.absolute())))
    if options.recordings is not None and all(one.wav is None for one in found):
        example = f"such as {phrases[0].output.with_suffix('.wav')} (--recordings)"
        raise InputError(f"{folder}: no such folder, or it has no recording of the list, {example}")
    return found
