"""Evaluates opened checkpoints on a list: a table on the terminal, files, and results that are resumed after a stop."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from common.audio import MelExtractor
from common.checkpoints import LoadedCheckpoint
from common.errors import OptionError
from common.evaluation.evaluator import Evaluator
from common.evaluation.items import EvaluationItem, read_copies, read_items
from common.evaluation.options import MUSHRA, EvaluationOptions
from common.evaluation.packages import PACKAGES, Pocketsphinx, installed
from common.evaluation.results import (
    JOURNAL,
    PAGE,
    RESULTS,
    add_to_journal,
    read_journal,
    save_page,
    save_results,
    tables,
)
from common.files import make_folder, sha256, writing
from common.pages import text_table
from common.precision import Precision
from common.progress import progress
from common.recognition import load_recognizer
from common.registry import VocoderSpec
from common.signals import StopSignals
from common.synthesis import GriffinLimVocoder, Synthesizer, contract_of, load_vocoder, make_voice
from common.synthesis.options import VoiceOptions

# Options that the results do not depend on, or whose files they depend on.
_NOT_SETTINGS = set("output fresh recordings transcripts dataset_path listening against results".split())


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
    can_recognize = "recognizer" in models or "pocketsphinx" in installed()
    items, evaluator = _open(path, options, voice, models, precision)
    inside = (one for one in items if one.recording and one.recording.is_relative_to(options.output.absolute()))
    if one := next(inside, None):
        raise OptionError(f"{one.phrase.where}: {one.recording} is in --output {options.output}; give another folder")
    test = options.test
    needs_recordings = test.listening == MUSHRA or (test.listening is not None and not test.against)
    if needs_recordings and not any(item.recording for item in items):
        needs = "recordings (--recordings)" if test.listening == MUSHRA else "recordings, or --against"
        raise OptionError(f"--listening {test.listening}: nothing to compare {path} with, expected {needs}")
    recognizers = [one.spec.option for role, one in models.items() if role == "recognizer"]
    has_words = any(item.words is not None for item in items)
    if "recognizer" in models:
        evaluator = replace(evaluator, recognizer=load_recognizer(models["recognizer"], precision=precision))
    elif can_recognize and has_words:
        evaluator = replace(evaluator, recognizer=Pocketsphinx.load())
    if can_recognize and not has_words and "generator" in models:
        print("note: the list is of phones, so there are no words to compare transcripts with; see --transcripts")
    wanted = {"pesq", "pystoi"} if evaluator.extractor else set()
    wanted |= {"pocketsphinx"} if evaluator.recognizer is None and has_words else set()
    if missing := [name for name in PACKAGES if name in wanted - installed()]:
        columns = ", ".join(PACKAGES[name] for name in missing)
        print(f"note: without columns {columns}; for them: .venv/bin/pip install {' '.join(missing)}")
    paths = {name: parameters[name] for name in ("generator", "vocoder", "list", *recognizers) if parameters[name]}
    settings = {
        "sha256": {role: sha256(one.path) for role, one in models.items()},
        "packages": sorted(installed()),
        "options": {name: value for name, value in parameters.items() if name not in _NOT_SETTINGS | paths.keys()},
    }
    facts = paths | {"precision": precision.name, "threads": torch.get_num_threads()}
    settings, facts = (json.loads(json.dumps(values, default=str)) for values in (settings, facts))
    return _run(items, evaluator, settings=settings, facts=facts, fresh=options.fresh)


def _open(
    path: Path,
    options: EvaluationOptions,
    voice_options: VoiceOptions,
    models: Mapping[str, LoadedCheckpoint],
    precision: Precision,
) -> tuple[list[EvaluationItem], Evaluator]:
    """The utterances of a list, and what makes sound of them: a voice, or without one a vocoder of recordings' mels."""
    vocoder, speaking, extractor = models.get("vocoder"), voice_options.speaking, None
    synthesizer: Synthesizer
    if "generator" in models:
        synthesizer = voice = make_voice(models["generator"], vocoder, voice_options, precision=precision)
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
    return items, Evaluator(options.output, synthesizer, griffin_lim, extractor)


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
    save_results(folder / RESULTS, results, n_listed=n_listed, settings=facts | settings)
    title = " through ".join(Path(facts[role]).name for role in ("generator", "vocoder") if role in facts)
    save_page(folder, results, n_listed=n_listed, title=title, facts=facts | settings["options"])
    heading, rows, averages = tables(results, n_listed=n_listed)
    failed = [result for result in results if result.error is not None]
    print(*text_table([heading, *rows, *averages]), f"report: {folder / PAGE}; figures: {folder / RESULTS}", sep="\n")
    if failed:
        print(f"{len(failed)} of {len(results)} utterances could not be evaluated completely")
        print(*text_table([(result.name, str(result.error)) for result in failed]), sep="\n")
    if signals.received is not None and len(results) < n_listed:
        print(f"stopped after {len(results)} of {n_listed} utterances; start it again to resume")
        return 128 + int(signals.received)
    return 1 if failed else 0
