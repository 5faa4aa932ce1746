"""Evaluates opened checkpoints on a list: a table on the terminal, files, and results that are resumed after a stop."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from common.audio import MelExtractor
from common.checkpoints import LoadedCheckpoint
from common.evaluation.evaluator import Evaluator, copy, speak
from common.evaluation.items import EvaluationItem, read_copies, read_items
from common.evaluation.options import EvaluationOptions
from common.evaluation.packages import PACKAGES, Pocketsphinx, installed, note_missing
from common.evaluation.page import save_page
from common.evaluation.results import (
    JOURNAL,
    MEASURES,
    PAGE,
    RESULTS,
    Journal,
    Result,
    averages,
    extent,
    files_of,
    save_results,
)
from common.files import check_apart, sha256, writing
from common.pages import Measure, Row, cells, text_line
from common.precision import Precision
from common.progress import print_line
from common.recognition import load_recognizer
from common.registry import VocoderSpec
from common.signals import StopSignals
from common.synthesis import GriffinLimVocoder, contract_of, load_vocoder, make_voice
from common.synthesis.options import VoiceOptions

# Options that the results do not depend on, or whose files they depend on.
_NOT_SETTINGS = set("generator vocoder list output fresh recordings transcripts dataset_path".split())
_NAME_WIDTH = 24  # characters of an utterance's name in the table


def evaluate(
    path: Path,
    options: EvaluationOptions,
    voice: VoiceOptions,
    models: Mapping[str, LoadedCheckpoint],
    *,
    precision: Precision,
    read: Sequence[tuple[str, Path]],
    parameters: Mapping[str, Any],
) -> int:
    """Evaluate the ``models``, by role, on the list at ``path``; the exit status.

    ``read`` are the files that options name; ``parameters`` are all options, for the page and for resuming. Mistakes
    in the list and the checkpoints show before the first phrase is spoken.

    Raises:
        InputError: the list, or what belongs to one of its lines, cannot be used; names the line.
        OptionError: the evaluation would write a file that it reads.
    """
    can_recognize = "recognizer" in models or "pocketsphinx" in installed()
    if "generator" in models:
        items, evaluator = _speaking(path, options, voice, models, precision, needs_words=can_recognize)
    else:
        items, evaluator = _copying(path, options, voice, models.get("vocoder"), precision)
    vocoder = [("VOCODER", models["vocoder"].path)] if "vocoder" in models else []
    _check_files(options, items, [*read, *vocoder])
    has_words = any(item.words is not None for item in items)
    if "recognizer" in models:
        evaluator = replace(evaluator, recognizer=load_recognizer(models["recognizer"], precision=precision))
    elif can_recognize and has_words:
        evaluator = replace(evaluator, recognizer=Pocketsphinx.load())
    note_missing([*evaluator.measures, *["pocketsphinx"] * (evaluator.recognizer is None and has_words)])
    named = {one.spec.option if role == "recognizer" else role: one for role, one in models.items()}
    facts = {role: str(parameters[role]) for role in ("generator", "vocoder", "list") if parameters[role]}
    facts |= {name: str(one.path) for name, one in named.items() if name not in facts}
    facts |= {"precision": precision.name, "threads": str(torch.get_num_threads())}
    values = {name: str(value) if isinstance(value, Path) else value for name, value in parameters.items()}
    settings = {
        "sha256": {name: sha256(one.path) for name, one in named.items()},
        "packages": sorted(installed()),
        "options": {name: value for name, value in values.items() if name not in _NOT_SETTINGS | named.keys()},
    }
    return _run(items, evaluator, settings=settings, facts=facts, fresh=options.fresh)


def _speaking(
    path: Path,
    options: EvaluationOptions,
    voice_options: VoiceOptions,
    models: Mapping[str, LoadedCheckpoint],
    precision: Precision,
    *,
    needs_words: bool,
) -> tuple[list[EvaluationItem], Evaluator]:
    """What a voice is to speak, ``needs_words`` as `read_items` has it, and what evaluates it."""
    vocoder, speaking = models.get("vocoder"), voice_options.speaking
    voice = make_voice(models["generator"], vocoder, voice_options, precision=precision)
    items = read_items(path, voice, options, needs_words=needs_words)
    griffin_lim = replace(voice, vocoder=GriffinLimVocoder(voice.audio, seed=speaking.seed), vocoder_pitch="mel")
    beside = None if vocoder is None else partial(speak, griffin_lim)
    return items, Evaluator(options.output, partial(speak, voice), beside, voice.sampling_rate)


def _copying(
    path: Path, options: EvaluationOptions, voice: VoiceOptions, opened: LoadedCheckpoint | None, precision: Precision
) -> tuple[list[EvaluationItem], Evaluator]:
    """The recordings whose mels a vocoder's checkpoint, or without one Griffin-Lim, makes sound of."""
    contract = None
    if opened is not None:
        contract = contract_of(opened, voice.speaking.accept_audio_differences)
    inference = None if opened is None or opened.exported is not None else opened.spec.inference
    takes_pitch = isinstance(inference, VocoderSpec) and inference.takes_pitch
    items, audio = read_copies(path, options, contract=contract, takes_pitch=takes_pitch)
    vocoder = load_vocoder(opened, voice, audio=audio, precision=precision)
    griffin_lim = GriffinLimVocoder(audio, seed=voice.speaking.seed)
    beside = None if opened is None else partial(copy, griffin_lim, precision.device)
    synthesize = partial(copy, vocoder, precision.device)
    return items, Evaluator(options.output, synthesize, beside, audio.sampling_rate, MelExtractor(audio))


def _check_files(options: EvaluationOptions, items: Sequence[EvaluationItem], read: Sequence[tuple[str, Path]]) -> None:
    """Refuse an evaluation that would write one of the files that it reads: of the items, or ``read``."""
    folder = options.output
    written = [("--output: the file", folder / name) for name in (JOURNAL, RESULTS, PAGE)]
    written += [(f"{one.where}: the file", path) for one in items for path in files_of(folder, one.name).values()]
    own = [(one.where, path) for one in items for path in one.phrase.files(options.dataset_path)]
    own += [(f"the recording of {one.where}", one.recording) for one in items if one.recording is not None]
    check_apart(written, [*read, *own])


def _run(
    items: Sequence[EvaluationItem],
    evaluator: Evaluator,
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
    kept = {one.name: one for one in earlier if all(path.is_file() for path in one.files(folder).values())}
    journal.start(list(kept.values()))
    if kept:
        print(f"{len(kept)} of {len(items)} utterances are from an earlier run; --fresh measures them again")
    columns = _columns(items, evaluator)
    _print_row(columns, "utterance", columns)
    for result in kept.values():
        _print_result(columns, result)
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
                _print_result(columns, results[-1])
    for name, means in averages(results).items():
        _print_row(columns, f"  {name}" if name else extent(results, len(items)), cells(columns, means))
    save_results(folder / RESULTS, results, n_listed=len(items), settings=facts | settings)
    title = " through ".join(Path(facts[role]).name for role in ("generator", "vocoder") if role in facts)
    save_page(folder, results, n_listed=len(items), title=title, facts=facts | settings["options"])
    print_line(f"report: {folder / PAGE}; figures: {folder / RESULTS}")
    n_failed = sum(result.error is not None for result in results)
    if n_failed:
        print_line(f"{n_failed} of {len(results)} utterances could not be evaluated completely")
    if signals.received is not None and len(results) < len(items):
        print_line(f"stopped after {len(results)} of {len(items)} utterances; start it again to resume")
        return 128 + int(signals.received)
    return 1 if n_failed else 0


def _columns(items: Sequence[EvaluationItem], evaluator: Evaluator) -> tuple[Measure, ...]:
    """The measures that an evaluation of ``items`` has, which are the columns of the table on the terminal."""
    available = set(evaluator.measures) if any(item.recording is not None for item in items) else set()
    available |= {"words"} if evaluator.recognizer and any(item.words is not None for item in items) else set()
    available -= PACKAGES.keys() - installed()
    return tuple(one for one in MEASURES.values() if not one.needs or one.needs in available)


def _print_result(columns: Sequence[Measure], result: Result) -> None:
    """Print the line of an utterance, and below it those of what it is shown beside."""
    _print_row(columns, result.name.removesuffix(".wav"), cells(columns, result.figures), result.error)
    for one in result.beside:
        _print_row(columns, f"  {one.name}", cells(columns, one.figures))


def _print_row(columns: Sequence[Measure], name: str, row: Row, note: str | None = None) -> None:
    short = name if len(name) <= _NAME_WIDTH else f"...{name[3 - _NAME_WIDTH :]}"
    widths = [_NAME_WIDTH, *(max(6, len(str(measure))) for measure in columns)]
    print_line(text_line((short, *row), widths) + (f"  {note}" if note else ""))
