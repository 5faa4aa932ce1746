"""Evaluates opened checkpoints on a list: a table on the terminal, files, and results that are resumed after a stop."""

import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from common.audio.mel import MelExtractor
from common.checkpoints.loading import LoadedCheckpoint
from common.errors import InputError, OptionError
from common.evaluation import results as reports
from common.evaluation.evaluator import Evaluator
from common.evaluation.items import EvaluationItem, read_copies, read_items
from common.evaluation.judges import Judges, installed, open_judges
from common.evaluation.options import MUSHRA, RESULTS, EvaluationOptions
from common.evaluation.results import Result
from common.files import make_folder, read_json, sha256, writing
from common.pages.tables import text_table
from common.precision import Precision
from common.progress import progress
from common.recognition.recognizer import load_recognizer
from common.registry import VocoderSpec
from common.signals import StopSignals
from common.synthesis.loading import contract_of, load_vocoder, make_voice
from common.synthesis.options import VoiceOptions
from common.synthesis.synthesizer import Synthesizer
from common.synthesis.vocoder import GriffinLimVocoder
from common.text.languages import language_of

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

    ``parameters`` are all options, for the page and for resuming. Raises InputError, which names the line of the list,
    before the first phrase is spoken.
    """
    items, evaluator = _open_evaluation(path, options, voice, models, precision)
    _check(items, options, path)
    recognizers = [one.spec.option for role, one in models.items() if role == "recognizer"]
    judges = _open_judges(items, evaluator, options, models, precision)
    paths = {name: parameters[name] for name in ("generator", "vocoder", "list", *recognizers) if parameters[name]}
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
    verdict = (line for tile in summary.tiles for line in textwrap.wrap(str(tile), 80, subsequent_indent="  "))
    print(f"{len(results)} of {n_listed} utterances", *verdict, sep="\n")
    print(*text_table(summary.rows), *text_table(summary.difference_rows), sep="\n")
    print(f"report: {options.output / reports.PAGE}\nfigures: {options.output / RESULTS}")
    if failed := [result for result in results if result.error is not None]:
        print(f"{len(failed)} of {len(results)} utterances could not be evaluated completely")
        print(*(f"  {result.name}  {result.error}" for result in failed), sep="\n")
    if status and len(results) < n_listed:
        print(f"stopped after {len(results)} of {n_listed} utterances; start it again to resume")
        return status
    return 1 if failed else 0


def _check(items: Sequence[EvaluationItem], options: EvaluationOptions, path: Path) -> None:
    """Raise OptionError if a recording would be overwritten, or a listening test has nothing to compare with."""
    output, kind = options.output, options.listening
    recorded = [(item.phrase.where, item.recording) for item in items if item.recording is not None]
    for where, recording in recorded:
        if recording.is_relative_to(output.absolute()):
            raise OptionError(f"{where}: {recording} is in --output {output}; give another folder")
    if kind is not None and not recorded and (kind == MUSHRA or not options.against):
        needs = "--recordings" if kind == MUSHRA else "--recordings or --against"
        raise OptionError(f"--listening {kind}: nothing to compare {path} with; give {needs}")


def _open_judges(
    items: Sequence[EvaluationItem],
    evaluator: Evaluator,
    options: EvaluationOptions,
    models: Mapping[str, LoadedCheckpoint],
    precision: Precision,
) -> Judges:
    """The judges whose figures the utterances can have."""
    recognizer = load_recognizer(models["recognizer"], precision=precision) if "recognizer" in models else None
    voice = evaluator.voice
    has_words = any(item.words is not None for item in items)
    if not has_words and voice is not None:
        print("note: the list is of phones, so there are no words to compare transcripts with; see --transcripts")
    wanted = ["distillmos"]
    wanted += ["faster_whisper"] if recognizer is None and has_words else []
    wanted += ["resemblyzer"] if any(item.recording for item in items) else []
    language = language_of(voice.front_end.config) if voice else ""
    return open_judges(wanted, options, language=language or "en", recognizer=recognizer)


def _open_evaluation(
    path: Path,
    options: EvaluationOptions,
    voice_options: VoiceOptions,
    models: Mapping[str, LoadedCheckpoint],
    precision: Precision,
) -> tuple[list[EvaluationItem], Evaluator]:
    """The utterances of a list, and what makes sound of them: a voice, or without one a vocoder of recordings' mels."""
    vocoder, speaking, extractor, voice = models.get("vocoder"), voice_options.speaking, None, None
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
    other = GriffinLimVocoder(synthesizer.audio, seed=speaking.seed)
    griffin_lim = None if vocoder is None else replace(synthesizer, vocoder=other, vocoder_pitch="mel")
    return items, Evaluator(options.output, synthesizer, griffin_lim, extractor, voice=voice)


def _run(
    items: Sequence[EvaluationItem], evaluator: Evaluator, settings: str, *, fresh: bool
) -> tuple[list[Result], int]:
    """The results of ``items``, of an earlier run of the same ``settings`` unless ``fresh``, and the exit status.

    After a signal the current utterance is finished.
    """
    folder, journal = evaluator.folder, evaluator.folder / reports.JOURNAL
    make_folder(folder, "; choose another --output")
    keys = {item.name: item.key(settings) for item in items}
    known = {} if fresh else reports.read_journal(journal)
    kept = {name: one for name, one in known.items() if one.key == keys.get(name) and one.is_complete(folder)}
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
                    reports.add_to_journal(journal, results[-1])
    reports.add_likeness(results)
    return results, 0 if signals.received is None else 128 + int(signals.received)


def print_differences(folders: Mapping[str, Path]) -> None:
    """Print how far the first of several evaluations is from each of the others, by the systems' names.

    Raises InputError where a folder has none, or one of other utterances.
    """
    found = {name: read_json(folder / RESULTS, kind="evaluation") for name, folder in folders.items()}
    settings = [one["settings"] for one in found.values()]
    measures = list(reports.MEASURES.values())
    if len({(one.get("whisper"), one["sha256"].get("recognizer")) for one in settings}) > 1:
        print("note: words were not recognized by the same model, so WER and CER are not compared")
        measures = [one for one in measures if one.key not in ("wer", "cer")]
    rows = {name: {row["name"]: row for row in one["utterances"]} for name, one in found.items()}
    first, *others = rows
    for name in others:
        apart = reports.find_differences(measures, rows[first], rows[name])
        if not apart:
            raise InputError(f"{name}: fewer than two utterances of {first} to compare")
        print(f"{first}\nless {name} ({reports.CONFIDENCE} % interval)")
        print(*text_table([(str(one), apart[one.key].show(one)) for one in measures if one.key in apart]), sep="\n")
