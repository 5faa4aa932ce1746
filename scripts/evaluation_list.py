"""The list that evaluate_voice speaks: its utterances, the words to be heard in them, and recordings of the same."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from common.errors import InputError, OptionError
from common.evaluation.evaluator import Item, check_items
from common.synthesis.phrases import Phrase, read_phrases
from common.synthesis.voice import Voice
from common.text.front_end import TextFrontEnd
from scripts.datasets.make_corpus import READER, normalise

READERS = ("auto", "espeak", "none")
ESPEAK_PHONES = "ipa"  # the set of symbols that the embedded speaker's phones are in


def read_items(args: argparse.Namespace, voice: Voice) -> list[Item]:
    """The list's utterances, all checked, with what each is measured by.

    Raises:
        InputError: the list, or what belongs to one of its lines, cannot be used; names the line.
    """
    phrases = _read_texts(args.list)
    if voice.model != "FastPitch" and (phrases[0].pitch is not None or phrases[0].duration is not None):
        raise InputError(f"{args.list}: its columns pitch and duration are for FastPitch, not for {voice.model}")
    is_phones = voice.front_end.config.input_type == "phone"
    read = wants_reader(args.reader, voice.front_end, phrases)
    if read:
        print("note: eSpeak turns the list's words into phones, as in the quickstart (--reader)")
    utterances = voice.encode(
        [replace(one, text=" ".join(READER.phones(normalise(one.text)))) for one in phrases] if read else phrases,
        dataset_path=args.dataset_path,
        speaker=args.speaker,
        seed=None if args.p_arpabet is None else args.seed,
    )
    words = {one.output: one.text for one in phrases} if read or not is_phones else {}
    words |= read_transcripts(args.transcripts, phrases)
    folder = recordings_folder(args) if any(phrase.wav is None for phrase in phrases) else None
    recordings = [find_recording(phrase, folder=folder, dataset_path=args.dataset_path) for phrase in phrases]
    items = [
        Item(utterance, phrase.text, words.get(phrase.output), recording)
        for utterance, phrase, recording in zip(utterances, phrases, recordings)
    ]
    check_items(items)
    if args.recordings is not None and all(item.recording is None for item in items):
        raise InputError(
            f"{args.recordings}: holds no recording of any of the {len(items)} utterances; expected files such as "
            f"{args.recordings / items[0].name} (--recordings)"
        )
    if args.jasper is not None and all(item.words is None for item in items):
        print("note: the list is of phones, so there are no words to compare with what is heard; see --transcripts")
    return items


def _read_texts(path: Path) -> list[Phrase]:
    phrases = read_phrases(path, optional=("wav",))
    if phrases[0].text is None:
        raise InputError(f"{phrases[0].where}: no text column, which an evaluation needs")
    return phrases


def wants_reader(reader: str, front_end: TextFrontEnd, phrases: Sequence[Phrase]) -> bool:
    """Whether a voice gets its phones from eSpeak.

    Raises:
        OptionError: ``reader`` is ``espeak``, and the voice does not read such phones.
    """
    kind = front_end.config.symbol_set
    if reader == "espeak" and kind != ESPEAK_PHONES:
        raise OptionError(f"--reader espeak gives phones of the set {ESPEAK_PHONES}, and the voice reads {kind}")
    if reader != "auto":
        return reader == "espeak"
    symbols = set(front_end.symbols)
    return kind == ESPEAK_PHONES and not any(set(front_end.clean(one.text).split()) <= symbols for one in phrases)


def read_transcripts(path: Path | None, phrases: Sequence[Phrase]) -> dict[PurePosixPath, str]:
    """Words by the utterances' names.

    Raises:
        InputError: the list cannot be read, or has words of none of ``phrases``.
    """
    if path is None:
        return {}
    words = {one.output: one.text for one in _read_texts(path)}
    if words.keys().isdisjoint(one.output for one in phrases):
        raise InputError(
            f"{path}: has no words of any of the {len(phrases)} utterances, the first of which is "
            f"{phrases[0].output} (--transcripts)"
        )
    return words


def recordings_folder(args: argparse.Namespace) -> Path | None:
    """Where recordings are looked for by the utterances' names: ``--recordings``, else ``--dataset-path``.

    None where neither is given: in the folder that every command runs in, others' sounds may lie.

    Raises:
        InputError: there is no such folder.
    """
    folder, option = args.recordings, "--recordings"
    if folder is None and args.dataset_path != Path():
        folder, option = args.dataset_path, "--dataset-path"
    if folder is not None and not folder.is_dir():
        raise InputError(f"{folder}: no such folder ({option})")
    return folder


def find_recording(phrase: Phrase, *, folder: Path | None, dataset_path: Path) -> Path | None:
    """The recorded clip of a phrase: what the list says, else what ``folder`` has of its name."""
    if phrase.wav is not None:
        return dataset_path / phrase.wav
    if folder is None:
        return None
    paths = (folder / phrase.output.with_suffix(suffix) for suffix in (phrase.output.suffix, ".flac"))
    return next((path for path in paths if path.is_file()), None)
