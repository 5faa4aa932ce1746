"""Evaluate opened checkpoints on a list: print a table, write files, and resume after a stop."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from common.audio.mel import MelExtractor
from common.checkpoints.loading import LoadedCheckpoint
from common.errors import InputError, OptionError
from common.evaluation import results as reports
from common.evaluation.evaluator import EvaluationItem, Evaluator, read_copies, read_items
from common.evaluation.judges import installed, open_judges
from common.evaluation.options import MUSHRA, RESULTS, EvaluationOptions
from common.evaluation.results import Result
from common.files import make_folder, read_json, sha256, writing
from common.pages.render import render_template
from common.pages.tables import text_table
from common.precision import Precision
from common.progress import progress
from common.recognition.recognizer import load_recognizer
from common.signals import StopSignals
from common.synthesis.loading import contract_of, load_vocoder, make_voice
from common.synthesis.options import VoiceOptions
from common.synthesis.synthesizer import Synthesizer
from common.synthesis.vocoder import GriffinLimVocoder
from common.text.languages import language_of

# Options that don't affect the results, or only through the files that they name.
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
    """Evaluate ``models``, by role, on the list at ``path``; return the exit status.

    ``parameters`` are all options, for the page and for resuming. Errors in the list raise InputError, which names the
    line, before anything is synthesized.
    """
    items, evaluator = _open_evaluation(path, options, voice, models, precision)
    kind, has_recordings = options.listening, any(item.recording is not None for item in items)
    if kind is not None and not has_recordings and (kind == MUSHRA or not options.against):
        needs = "--recordings" if kind == MUSHRA else "--recordings or --against"
        raise OptionError(f"--listening {kind}: nothing to compare {path} with; give {needs}")
    recognizer = load_recognizer(models["recognizer"], precision=precision) if "recognizer" in models else None
    has_words = any(item.words is not None for item in items)
    if not has_words and evaluator.voice is not None:
        print("note: the list has phones, so there are no words to compare transcripts with; see --transcripts")
    whisper, likeness = ["faster_whisper"] * (recognizer is None and has_words), ["resemblyzer"] * has_recordings
    language = language_of(evaluator.voice.front_end.config) if evaluator.voice else None
    judges = open_judges(["distillmos", *whisper, *likeness], options, language=language or "en", recognizer=recognizer)
    names = ("generator", "vocoder", "list", *(one.spec.option for one in models.values()))
    paths = {name: parameters[name] for name in names if parameters.get(name)}
    settings = {
        "sha256": {role: sha256(one.path) for role, one in models.items()},
        "packages": sorted(installed()),
        "whisper": judges.whisper,
        "options": {name: value for name, value in parameters.items() if name not in _NOT_SETTINGS | paths.keys()},
    }
    facts = paths | {"precision": precision.name, "threads": torch.get_num_threads()}
    settings, facts = (json.loads(json.dumps(values, default=str)) for values in (settings, facts))
    results, status = _run(items, replace(evaluator, judges=judges), json.dumps(settings), fresh=options.fresh)
    n_listed, summary = len(items), reports.Summary.of(results)
    reports.save_results(options.output / RESULTS, results, summary, n_listed=n_listed, settings=facts | settings)
    title = " through ".join(Path(facts[role]).name for role in ("generator", "vocoder") if role in facts)
    facts |= settings["options"]
    reports.save_page(options.output, results, summary, n_listed=n_listed, title=title, facts=facts)
    files = {"page": options.output / reports.PAGE, "figures": options.output / RESULTS}
    tables = [*text_table(summary.rows), *text_table(summary.difference_rows)]
    told = {"results": results, "n_listed": n_listed, "summary": summary, "tables": tables} | files
    print(render_template("evaluation/terminal.txt", **told).strip())
    return status if len(results) < n_listed else int(any(result.error for result in results))


def _open_evaluation(
    path: Path,
    options: EvaluationOptions,
    voice_options: VoiceOptions,
    models: Mapping[str, LoadedCheckpoint],
    precision: Precision,
) -> tuple[list[EvaluationItem], Evaluator]:
    """Return a list's utterances and an evaluator for a voice or, without one, for a vocoder copying recordings."""
    vocoder, speaking, extractor, voice = models.get("vocoder"), voice_options.speaking, None, None
    if "generator" in models:
        voice = make_voice(models["generator"], vocoder, voice_options, precision=precision)
        synthesizer = voice.synthesizer
        items = read_items(path, voice, options)
    else:
        contract = None if vocoder is None else contract_of(vocoder, speaking.accept_audio_differences)
        items, audio = read_copies(path, options, contract=contract)
        loaded = load_vocoder(vocoder, voice_options, audio=audio, precision=precision)
        synthesizer = Synthesizer(audio=audio, precision=precision, vocoder=loaded, fade_out=0)
        extractor = MelExtractor(audio)
    other = GriffinLimVocoder(synthesizer.audio, seed=speaking.seed)
    griffin_lim = None if vocoder is None else replace(synthesizer, vocoder=other)
    return items, Evaluator(options.output, synthesizer, griffin_lim, extractor, voice=voice)


def _run(
    items: Sequence[EvaluationItem], evaluator: Evaluator, settings: str, *, fresh: bool
) -> tuple[list[Result], int]:
    """Return the results of ``items`` (unless ``fresh``, reusing those of the same ``settings``) and exit status."""
    folder, journal = evaluator.folder, evaluator.folder / reports.JOURNAL
    make_folder(folder, "; choose another --output")
    keys = {item.name: item.key(settings) for item in items}
    known = {} if fresh else reports.read_journal(journal)
    kept = {name: one for name, one in known.items() if one.key == keys.get(name) and one.is_complete(folder)}
    if kept:
        print(f"{len(kept)} of {len(items)} utterances are from an earlier run; use --fresh to measure them again")
    results = []
    with StopSignals() as signals:  # a signal lets the current utterance finish
        if new := [item for item in items if item.name not in kept]:
            evaluator.warm_up(new[0])
        for item in progress(items, desc="evaluating", unit="utterances"):
            if item.name in kept:
                results.append(kept[item.name])
            elif signals.received is None:
                with writing(folder, "; finished utterances are kept: free some space, then run it again to resume"):
                    results.append(replace(evaluator.evaluate(item), key=keys[item.name]))
                    reports.add_to_journal(journal, results[-1])
    reports.add_likeness(results)
    return results, 0 if signals.received is None else 128 + int(signals.received)


def print_differences(folders: Mapping[str, Path]) -> None:
    """Print the first evaluation's differences from each other one; raises InputError if one has other utterances."""
    found = {name: read_json(folder / RESULTS, kind="evaluation") for name, folder in folders.items()}
    settings, measures = [one["settings"] for one in found.values()], list(reports.MEASURES.values())
    if len({(one.get("whisper"), one["sha256"].get("recognizer")) for one in settings}) > 1:
        print("note: different models recognized the words, so WER and CER are not compared")
        measures = [one for one in measures if one.key not in ("wer", "cer")]
    rows = {name: {row["name"]: row for row in one["utterances"]} for name, one in found.items()}
    first, *others = rows
    for name in others:
        apart = reports.find_differences(measures, rows[first], rows[name])
        if not apart:
            raise InputError(f"{name}: fewer than two utterances in common with {first}")
        print(f"{first}\nminus {name} ({reports.CONFIDENCE} % interval)")
        print(*text_table([(str(one), apart[one.key].show(one)) for one in measures if one.key in apart]), sep="\n")
