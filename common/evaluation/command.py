"""Evaluates opened checkpoints on a list: a table on the terminal, files, and results that are resumed after a stop."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import torch

from common.audio import MelExtractor
from common.checkpoints import LoadedCheckpoint
from common.errors import InputError, OptionError, reason
from common.evaluation.differences import difference_rows, find_differences
from common.evaluation.evaluator import Evaluator, Judges
from common.evaluation.items import EvaluationItem, read_copies, read_items
from common.evaluation.options import MUSHRA, EvaluationOptions
from common.evaluation.packages import PACKAGES, installed, load_distillmos, load_speaker_encoder
from common.evaluation.results import (
    JOURNAL,
    MEASURES,
    PAGE,
    RESULTS,
    add_likeness,
    add_to_journal,
    differences_beside,
    read_journal,
    save_page,
    save_results,
    tables,
)
from common.evaluation.whisper import Whisper
from common.files import make_folder, read_json, sha256, writing
from common.pages import text_table
from common.precision import Precision
from common.progress import progress
from common.recognition import Recognizer, load_recognizer
from common.registry import VocoderSpec
from common.signals import StopSignals
from common.synthesis import GriffinLimVocoder, Synthesizer, Voice, contract_of, load_vocoder, make_voice
from common.synthesis.options import VoiceOptions
from common.text.languages import language_of

T = TypeVar("T")
# Options that the results do not depend on, or whose files they depend on.
_NOT_SETTINGS = set(
    "output fresh recordings transcripts dataset_path listening against results whisper language".split()
)


def evaluate(
    path: Path,
    options: EvaluationOptions,
    voice: VoiceOptions,
    models: Mapping[str, LoadedCheckpoint],
    *,
    precision: Precision,
    parameters: Mapping[str, Any],
) -> int:
    """Evaluate the ``models``, by role, on the list at ``path``; the exit status.

    ``parameters`` are all options, for the page and for resuming. Mistakes in the list and the checkpoints show before
    the first phrase is spoken.

    Raises:
        InputError: the list, or what belongs to one of its lines, cannot be used; names the line.
        OptionError: a recording is in the folder that is written.
    """
    items, evaluator = open_evaluation(path, options, voice, models, precision)
    inside = (one for one in items if one.recording and one.recording.is_relative_to(options.output.absolute()))
    if one := next(inside, None):
        raise OptionError(f"{one.phrase.where}: {one.recording} is in --output {options.output}; give another folder")
    test = options.test
    needs_recordings = test.listening == MUSHRA or (test.listening is not None and not test.against)
    if needs_recordings and not any(item.recording for item in items):
        needs = "recordings (--recordings)" if test.listening == MUSHRA else "recordings, or --against"
        raise OptionError(f"--listening {test.listening}: nothing to compare {path} with, expected {needs}")
    recognizers = [one.spec.option for role, one in models.items() if role == "recognizer"]
    recognizer = load_recognizer(models["recognizer"], precision=precision) if recognizers else None
    speaking = evaluator.voice
    language = language_of(speaking.front_end.config) if speaking else ""
    wanted = _wanted_packages(items, speaking, recognizer)
    judges = open_judges(wanted, options, language=language or "en", recognizer=recognizer)
    evaluator = replace(evaluator, judges=judges)
    whisper = judges.recognizer if isinstance(judges.recognizer, Whisper) else None
    paths = {name: parameters[name] for name in ("generator", "vocoder", "list", *recognizers) if parameters[name]}
    settings = {
        "sha256": {role: sha256(one.path) for role, one in models.items()},
        "packages": sorted(installed()),
        "whisper": None if whisper is None else f"{whisper.source}, {whisper.language}",
        "options": {name: value for name, value in parameters.items() if name not in _NOT_SETTINGS | paths.keys()},
    }
    facts = paths | {"precision": precision.name, "threads": torch.get_num_threads()}
    settings, facts = (json.loads(json.dumps(values, default=str)) for values in (settings, facts))
    return _run(items, evaluator, settings=settings, facts=facts, fresh=options.fresh)


def _wanted_packages(items: Sequence[EvaluationItem], voice: Voice | None, recognizer: Recognizer | None) -> set[str]:
    """The packages that measure something of such utterances; ``voice`` is None for copies."""
    has_words = any(item.words is not None for item in items)
    if not has_words and voice is not None and (recognizer is not None or "faster_whisper" in installed()):
        print("note: the list is of phones, so there are no words to compare transcripts with; see --transcripts")
    wanted = {"distillmos"} | ({"pesq", "pystoi"} if voice is None else set())
    wanted |= {"faster_whisper"} if recognizer is None and has_words else set()
    return wanted | ({"resemblyzer"} if any(item.recording for item in items) else set())


def open_judges(
    wanted: Collection[str], options: EvaluationOptions, *, language: str, recognizer: Recognizer | None = None
) -> Judges:
    """What hears sounds: a ``recognizer``, else Whisper, and other models, of those ``wanted`` packages that are here.

    A line says which columns are missing.

    Raises:
        OptionError: the Whisper or the language that the options name cannot be used.
    """
    usable = installed() & set(wanted)
    missing = {name: PACKAGES[name] for name in PACKAGES if name in set(wanted) - usable}

    def load(name: str, make: Callable[[], T]) -> T | None:
        try:
            return make() if name in usable else None
        except (ImportError, OSError, OptionError) as error:  # a package that it requires, or a model
            if isinstance(error, OptionError) and (options.whisper or options.language):
                raise
            missing[name] = f"{PACKAGES[name]} ({error if isinstance(error, OptionError) else reason(error)})"
            return None

    whisper = load("faster_whisper", lambda: Whisper.load(options.whisper, options.language or language))
    if whisper is not None:
        print(f"note: words are recognized by Whisper {whisper.source}, language {whisper.language}")
    score, embed = load("distillmos", load_distillmos), load("resemblyzer", load_speaker_encoder)
    if missing:
        print(f"note: without columns {', '.join(missing.values())}; for them see requirements-evaluate.txt")
    return Judges(recognizer or whisper, score, embed)


def open_evaluation(
    path: Path,
    options: EvaluationOptions,
    voice_options: VoiceOptions,
    models: Mapping[str, LoadedCheckpoint],
    precision: Precision,
) -> tuple[list[EvaluationItem], Evaluator]:
    """The utterances of a list, and what makes sound of them: a voice, or without one a vocoder of recordings' mels."""
    vocoder, speaking, extractor = models.get("vocoder"), voice_options.speaking, None
    voice = None
    if "generator" in models:
        voice = make_voice(models["generator"], vocoder, voice_options, precision=precision)
        synthesizer = voice.synthesizer
        items = read_items(path, voice, options)
    else:
        contract = None if vocoder is None else contract_of(vocoder, speaking.accept_audio_differences)
        inference = None if vocoder is None or vocoder.exported is not None else vocoder.spec.inference
        takes_pitch = isinstance(inference, VocoderSpec) and inference.takes_pitch
        items, audio = read_copies(path, options, contract=contract, takes_pitch=takes_pitch)
        loaded = load_vocoder(vocoder, voice_options, audio=audio, precision=precision)
        synthesizer = Synthesizer(audio=audio, precision=precision, vocoder=loaded, fade_out=0)
        extractor = MelExtractor(audio)
    griffin_lim = None
    if vocoder is not None:
        other = GriffinLimVocoder(synthesizer.audio, seed=speaking.seed)
        griffin_lim = replace(synthesizer, vocoder=other, vocoder_pitch="mel")
    return items, Evaluator(options.output, synthesizer, griffin_lim, extractor, voice=voice)


def _run(
    items: Sequence[EvaluationItem],
    evaluator: Evaluator,
    *,
    settings: dict[str, Any],
    facts: dict[str, str],
    fresh: bool,
) -> int:
    """Evaluate ``items``, resuming an earlier run of the same ``settings`` unless ``fresh``; the exit status.

    The JSON and the page with ``facts`` go into the evaluator's folder, the table to stdout. After a signal the
    current utterance is finished, and what there is so far is reported.
    """
    folder, journal = evaluator.folder, evaluator.folder / JOURNAL
    make_folder(folder, "; choose another --output")
    if fresh:
        journal.unlink(missing_ok=True)
    keys = {item.name: item.key(json.dumps(settings)) for item in items}
    same = [one for one in read_journal(journal).values() if one.error is None and one.key == keys.get(one.name)]
    kept = {one.name: one for one in same if all(path.is_file() for path in one.files(folder).values())}
    if kept:
        print(f"{len(kept)} of {len(items)} utterances are from an earlier run; --fresh measures them again")
    results = []
    with StopSignals() as signals:
        if new := [item for item in items if item.name not in kept]:
            evaluator.warm_up(new[0])
        for item in progress(items, desc="evaluating", unit="utterances"):
            if item.name in kept:
                results.append(kept[item.name])
            elif signals.received is None:
                with writing(folder, "; what is finished is kept: make room, and start it again to resume"):
                    results.append(replace(evaluator.evaluate(item), key=keys[item.name]))
                    add_to_journal(journal, results[-1])
    n_listed = len(items)
    add_likeness(results)
    save_results(folder / RESULTS, results, n_listed=n_listed, settings=facts | settings)
    title = " through ".join(Path(facts[role]).name for role in ("generator", "vocoder") if role in facts)
    save_page(folder, results, n_listed=n_listed, title=title, facts=facts | settings["options"])
    heading, rows, averages = tables(results, n_listed=n_listed)
    failed = [result for result in results if result.error is not None]
    apart = text_table(difference_rows(list(MEASURES.values()), differences_beside(results)))
    print(*text_table([heading, *rows, *averages]), *apart, sep="\n")
    print(f"report: {folder / PAGE}; figures: {folder / RESULTS}")
    if failed:
        print(f"{len(failed)} of {len(results)} utterances could not be evaluated completely")
        print(*text_table([(result.name, str(result.error)) for result in failed]), sep="\n")
    if signals.received is not None and len(results) < n_listed:
        print(f"stopped after {len(results)} of {n_listed} utterances; start it again to resume")
        return 128 + int(signals.received)
    return 1 if failed else 0


def print_differences(folders: Mapping[str, Path]) -> None:
    """Print how far the first of several evaluations is from each of the others, by the systems' names.

    Raises InputError where a folder has none, or one of other utterances.
    """
    found = {name: read_json(folder / RESULTS, kind="evaluation") for name, folder in folders.items()}
    first, *others = found
    measures = list(MEASURES.values())
    if (
        len({(one["settings"].get("whisper"), one["settings"]["sha256"].get("recognizer")) for one in found.values()})
        > 1
    ):
        print("note: words were not recognized by the same model, so WER and CER are not compared")
        measures = [one for one in measures if one.key not in ("wer", "cer")]
    figures = {
        name: {row["name"]: {key: row[key] for key in row if row[key] is not None} for row in one["utterances"]}
        for name, one in found.items()
    }
    apart = find_differences(measures, figures[first], {name: figures[name] for name in others})
    if missing := [name for name in others if name not in apart]:
        raise InputError(f"{missing[0]}: fewer than two utterances of {first} to compare")
    print(first, *text_table(difference_rows(measures, apart)), sep="\n")
