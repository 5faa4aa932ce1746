"""The utterances of an evaluation: what the voice says, the words to recognize in it, and recordings of the same."""

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
    """An utterance to synthesize, and what it is compared with."""

    phrase: Phrase  # as in the list, ``wav`` the path of its recording, if there is one
    inputs: tuple[SynthesisInput, ...]  # one, or of a long text several
    words: str | None = None  # to be recognized; None: not known, as the text is phones

    @property
    def recording(self) -> Path | None:
        """The recording of the same words, if there is one."""
        return None if self.phrase.wav is None else Path(self.phrase.wav)

    @property
    def name(self) -> str:
        """The name of its files."""
        return str(self.phrase.output)

    def key(self, settings: str) -> str:
        """A digest of what its results depend on: the ``settings`` of the evaluation, its inputs and its recording."""
        tensors = [tensor for one in self.inputs for tensor in (one.tokens, one.pitch, one.durations)]
        facts: list[object] = [settings, self.phrase.text, self.words, self.inputs[0].speaker]
        facts += [None if tensor is None else tensor.tolist() for tensor in tensors]
        if self.recording is not None:
            facts += [str(self.recording), self.recording.stat().st_size, self.recording.stat().st_mtime_ns]
        return hashlib.sha256(repr(facts).encode()).hexdigest()


def read_items(path: Path, voice: Voice, options: EvaluationOptions) -> list[EvaluationItem]:
    """A list's utterances for a voice, all checked; raises InputError, which names the line."""
    phrases = find_recordings(read_texts(path), options)
    utterances = voice.encode(phrases, dataset_path=options.dataset_path)
    parts = [tuple(inputs) for _, inputs in itertools.groupby(utterances, key=lambda one: one.phrase.output)]
    text = voice.front_end.config
    words = _read_words(phrases, options.transcripts, reads_text=text.input_type == "char" or text.g2p is not None)
    return [EvaluationItem(phrase, inputs, words.get(phrase.output)) for phrase, inputs in zip(phrases, parts)]


def read_copies(
    path: Path, options: EvaluationOptions, *, contract: AudioContract | None
) -> tuple[list[EvaluationItem], AudioConfig]:
    """A list's recordings with mels, and the description of these."""
    phrases = find_recordings(read_texts(path, needs_text=False), options)
    if lacking := [one.where for one in phrases if one.wav is None]:
        raise InputError(f"{lacking[0]}: no recording to copy; give a column wav, or --recordings")
    inputs, audio = load_mels_or_recordings(phrases, dataset_path=options.dataset_path, contract=contract)
    words = _read_words(phrases, options.transcripts, reads_text=True)
    return [EvaluationItem(one.phrase, (one,), words.get(one.phrase.output)) for one in inputs], audio


def read_texts(path: Path, *, needs_text: bool = True) -> list[Phrase]:
    """A list's phrases; InputError if there is no text and ``needs_text``."""
    phrases = read_phrases(path, optional=("wav",) if needs_text else ("wav", "text"))
    if needs_text and phrases[0].text is None:
        raise InputError(f"{phrases[0].where}: no text column, which an evaluation needs")
    return phrases


def _read_words(phrases: Sequence[Phrase], transcripts: Path | None, *, reads_text: bool) -> dict[PurePosixPath, str]:
    """Words by the utterances' names: those of the list, if it is of text, and in their place those of transcripts."""
    words = {one.output: plain_text(one.text) for one in phrases if one.text is not None} if reads_text else {}
    if transcripts is not None:
        given = {one.output: one.text or "" for one in read_texts(transcripts)}
        if given.keys().isdisjoint(one.output for one in phrases):
            raise InputError(f"{transcripts}: has no words of any utterance, the first of which is {phrases[0].output}")
        words |= given
    return words


def find_recordings(phrases: Sequence[Phrase], options: EvaluationOptions) -> list[Phrase]:
    """The phrases, ``wav`` the absolute path of each one's recording, whose header is checked; None without one."""
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
        raise InputError(f"{folder}: no such folder, or no recording of the list in it, {example}")
    return found
