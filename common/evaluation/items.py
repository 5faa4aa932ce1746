"""The utterances of an evaluation: what the voice says, the words to recognize in it, and recordings of the same."""

import hashlib
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from common.audio import check_wav
from common.errors import InputError, OptionError
from common.synthesis import Phrase, SynthesisInput, Voice, read_phrases
from common.synthesis.phrases import warn_unread
from common.text import Speaker, TextFrontEnd, check_length, check_markup, get_cleaner, plain_text

READERS = ("auto", "espeak", "none")
_ESPEAK_SYMBOLS = "ipa"  # the symbol set of eSpeak's phones
_ESPEAK = Speaker(pitch=95)  # that of the quickstart's corpus


@dataclass(frozen=True)
class EvaluationItem:
    """An utterance to synthesize, and what it is compared with."""

    inputs: tuple[SynthesisInput, ...]  # one, or of a long text several
    text: str  # as in the list
    words: str | None = None  # to be recognized; None: not known, as the text is phones
    recording: Path | None = None  # of the same words

    @property
    def phrase(self) -> Phrase:
        """Its line in the list."""
        return self.inputs[0].phrase

    @property
    def name(self) -> str:
        """The name of its files."""
        return str(self.phrase.output)

    @property
    def where(self) -> str:
        """Its line in the list, for messages."""
        return self.phrase.where

    @property
    def key(self) -> str:
        """A digest of what its results depend on besides the models."""
        tensors = [tensor for one in self.inputs for tensor in (one.tokens, one.pitch, one.durations, one.frame_pitch)]
        values = (None if tensor is None else tensor.tolist() for tensor in tensors)
        facts = [self.text, self.words, self.inputs[0].speaker, *values]
        if self.recording is not None:
            state = self.recording.stat()
            facts += [str(self.recording), state.st_size, state.st_mtime_ns]
        return hashlib.sha256(repr(facts).encode()).hexdigest()


def read_items(
    path: Path,
    voice: Voice,
    *,
    dataset_path: Path,
    recordings: Path | None,
    transcripts: Path | None,
    reader: str,
    speaker: str | None,
    seed: int | None,
    needs_words: bool,
) -> list[EvaluationItem]:
    """The list's utterances, all checked, with what each is compared with.

    The list's columns start from ``dataset_path`` (``Path()`` if not given); ``recordings`` is a folder with those of
    the utterances' names, ``transcripts`` a list with their words, where the list is of phones. ``reader`` is one of
    READERS, ``speaker`` speaks where the list has no such column, ``seed`` is that of words that become phones (None:
    all that the front end knows). Words are missed if the evaluation ``needs_words``.

    Raises:
        InputError: the list, or what belongs to one of its lines, cannot be used; names the line.
    """
    phrases = read_texts(path)
    texts = {one.output: one.text or "" for one in phrases}
    unread = {"pitch", "duration"} - set(voice.phrase_columns)
    if any(getattr(phrases[0], column) is not None for column in unread):
        raise InputError(f"{path}: {voice.spec.name} does not support its columns pitch and duration")
    uses_espeak = _uses_espeak(reader, voice.front_end, texts.values())
    spoken = phrases
    if uses_espeak:
        print("note: eSpeak turns the list's words into phones, as in the quickstart (--reader)")
        for phrase in phrases:
            check_length(texts[phrase.output], where=phrase.where)
            check_markup(texts[phrase.output], where=phrase.where)
        clean = get_cleaner("english_cleaners_v3")
        spoken = [replace(one, text=" ".join(_ESPEAK.phones(clean(texts[one.output])))) for one in phrases]
    utterances = voice.encode(spoken, dataset_path=dataset_path, speaker=speaker, seed=seed)
    text = voice.front_end.config
    reads_text = uses_espeak or text.input_type == "char" or text.g2p is not None
    words = {name: plain_text(one) for name, one in texts.items()} if reads_text else {}
    words |= read_transcripts(transcripts, phrases, needs_words=needs_words)
    found = find_recordings(path, phrases, dataset_path=dataset_path, recordings=recordings)
    parts = itertools.groupby(utterances, key=lambda one: one.phrase.output)
    items = [
        EvaluationItem(tuple(inputs), texts[phrase.output], words.get(phrase.output), recording)
        for (_, inputs), phrase, recording in zip(parts, phrases, found)
    ]
    if needs_words and all(item.words is None for item in items):
        print("note: the list is of phones, so there are no words to compare transcripts with; see --transcripts")
    warn_unread(phrases, read=("text", "wav", "speaker", *voice.phrase_columns), source=str(path))
    return items


def read_texts(path: Path, *, needs_text: bool = True) -> list[Phrase]:
    """A list's phrases, whose sounds are WAV files; InputError if there is no text and ``needs_text``."""
    phrases = [
        # The sounds are measured as their files have them, which therefore lose nothing.
        one if one.output.suffix.lower() == ".wav" else replace(one, output=one.output.with_suffix(".wav"))
        for one in read_phrases(path, optional=("wav",) if needs_text else ("wav", "text"))
    ]
    if needs_text and phrases[0].text is None:
        raise InputError(f"{phrases[0].where}: no text column, which an evaluation needs")
    return phrases


def _uses_espeak(reader: str, front_end: TextFrontEnd, texts: Iterable[str]) -> bool:
    """Whether eSpeak gives the voice its phones; raises OptionError if it is asked to and the voice reads others."""
    kind = front_end.config.symbol_set
    if reader == "espeak" and kind != _ESPEAK_SYMBOLS:
        raise OptionError(f"--reader espeak gives phones of the set {_ESPEAK_SYMBOLS}, and the voice reads {kind}")
    if front_end.config.g2p is not None:
        if reader == "espeak":
            raise OptionError("--reader espeak is for a voice that reads phones, and this one makes them of the text")
        return False
    if reader != "auto":
        return reader == "espeak"
    symbols = set(front_end.symbols)
    return kind == _ESPEAK_SYMBOLS and not any(set(front_end.clean(text).split()) <= symbols for text in texts)


def read_transcripts(path: Path | None, phrases: Sequence[Phrase], *, needs_words: bool) -> dict[PurePosixPath, str]:
    """Words by the utterances' names; raises InputError if the list has words of none of ``phrases``."""
    if path is None:
        return {}
    words = {one.output: one.text or "" for one in read_texts(path)}
    if words.keys().isdisjoint(one.output for one in phrases):
        raise InputError(
            f"{path}: has no words of any of the {len(phrases)} utterances, the first of which is "
            f"{phrases[0].output} (--transcripts)"
        )
    if not needs_words:
        raise OptionError("--transcripts are for a recognizer, and there is none: give --jasper, or leave them out")
    return words


def find_recordings(
    path: Path, phrases: Sequence[Phrase], *, dataset_path: Path, recordings: Path | None
) -> list[Path | None]:
    """The recording of each phrase of list ``path``, whose header is checked; None where there is none."""
    needs_folder = any(phrase.wav is None for phrase in phrases)
    if recordings is not None and not needs_folder:
        raise OptionError(
            f"--recordings {recordings}: {path} names a recording of each utterance; leave one of them out"
        )
    folder = _recordings_folder(recordings, dataset_path) if needs_folder else None
    found = [dataset_path / one.wav if one.wav is not None else _find_recording(one, folder) for one in phrases]
    for phrase, recording in zip(phrases, found):
        if recording is not None:
            check_wav(recording, sampling_rate=None, where=phrase.where)
    if recordings is not None and not any(found):
        raise InputError(
            f"{recordings}: holds no recording of any of the {len(phrases)} utterances; expected files such as "
            f"{recordings / phrases[0].output} (--recordings)"
        )
    return found


def _recordings_folder(recordings: Path | None, dataset_path: Path) -> Path | None:
    """The folder searched for recordings by the utterances' names: ``--recordings``, else ``--dataset-path``.

    None where neither is given: the current folder may hold unrelated recordings of these names.
    """
    folder, option = recordings, "--recordings"
    if folder is None and dataset_path != Path():
        folder, option = dataset_path, "--dataset-path"
    if folder is not None and not folder.is_dir():
        raise InputError(f"{folder}: no such folder ({option})")
    return folder


def _find_recording(phrase: Phrase, folder: Path | None) -> Path | None:
    """The recording of the utterance's name in ``folder``."""
    if folder is None:
        return None
    paths = (folder / phrase.output.with_suffix(suffix) for suffix in (phrase.output.suffix, ".flac"))
    return next((path for path in paths if path.is_file()), None)
