"""A corpus through extract_mels.py: lists in, features, statistics and new lists out, over workers and ranks."""

import functools
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from common.audio.pitch import statistics
from common.audio.pitch_statistics import PitchStatistics
from common.data.filelist import read_filelist
from common.distributed import Ranks
from common.errors import InputError
from common.extraction.batches import mels_on_device
from common.extraction.features import (
    FRAME_PITCH,
    ExtractionPlan,
    Outcome,
    Prepared,
    Utterance,
    extract,
    mels_are_missing,
    normalize_pitch,
    prepare,
)
from common.extraction.folders import prepare_output_folders
from common.extraction.teacher import TeacherModel, run_teacher, teacher_of, warn_dropped
from common.extraction.workers import WorkerPool
from common.files import write_json, write_text
from common.progress import progress

T = TypeVar("T")

# a training list has one column of pitch: the first of these that was extracted
PITCH_COLUMN = ("pitch_char", "pitch_trichar", "pitch_mel", FRAME_PITCH)


@dataclass
class Report:
    """What was made and what was refused."""

    n_utterances: int = 0
    made: Counter = field(default_factory=Counter)  # folder -> files
    kept: Counter = field(default_factory=Counter)  # folder -> files that were complete already
    refused: list[tuple[str, str]] = field(default_factory=list)  # (list.txt:7, reason)
    statistics: dict[str, PitchStatistics] = field(default_factory=dict)  # kind of pitch ->
    written: list[tuple[Path, str]] = field(default_factory=list)  # single files, with a description
    speech_seconds: float = 0.0
    elapsed_seconds: float = 0.0  # from the first check, once the workers have started, to the last file


class FailedElsewhereError(Exception):
    """Another rank has failed and reports why; this one only has to end."""


@dataclass(frozen=True)
class Part:
    """The results of one rank's share."""

    outcomes: list[Outcome]
    refusals: dict[int, str]  # utterance's index -> reason
    texts: dict[int, str]  # index of each utterance that was made -> its text in the meta file


def read_lists(paths: Sequence[Path]) -> list[Utterance]:
    """The utterances of all lists, ``wavs/a.wav|text`` with a speaker's column where there is one."""
    utterances: list[Utterance] = []
    for list_index, path in enumerate(paths):
        entries = read_filelist(path, columns=("wav", "text"), optional=("speaker",), may_be_empty=("text",))
        for entry in entries:
            fields = entry.fields
            utterances.append(
                Utterance(
                    index=len(utterances),
                    list_index=list_index,
                    wav=fields["wav"],
                    text=fields["text"],
                    speaker=fields.get("speaker"),
                    where=entry.where,
                )
            )
    return utterances


def refuse_duplicates(utterances: Sequence[Utterance]) -> dict[int, str]:
    """Index -> reason, for each utterance whose features would overwrite those of an earlier line."""
    first: dict[str, Utterance] = {}
    refused = {}
    for utterance in utterances:
        other = first.setdefault(utterance.name, utterance)
        if other is not utterance:
            refused[utterance.index] = f"{utterance.wav}: duplicate, its files are those of {other.wav} ({other.where})"
    return refused


def extract_corpus(
    plan: ExtractionPlan,
    *,
    lists: Sequence[Path],
    meta_files: Sequence[Path] = (),
    given: PitchStatistics | None = None,
    teacher: TeacherModel | None = None,
    ranks: Ranks,
    n_workers: int,
) -> Report:
    """Check every utterance of ``lists``, extract what ``plan`` says, and write one meta file a list.

    ``teacher`` is the plan's, on the device of ``ranks``. Pitch is normalized by ``given``, else by the statistics of
    the first list, whose file is written. With several ranks each one takes every ``world_size``-th utterance; what
    is written does not depend on their number, nor on that of the workers. An InputError on one rank is a
    FailedElsewhereError on the others.
    """
    plan = replace(plan, mels_by_workers=ranks.device.type == "cpu")
    utterances = _together(ranks, lambda: _open_corpus(plan, lists) if ranks.is_main else [])[0]
    duplicates = refuse_duplicates(utterances)
    own = [item for item in utterances[ranks.rank :: ranks.world_size] if item.index not in duplicates]
    with WorkerPool(plan, n_workers=max(1, min(n_workers, len(own)))) as pool:
        started = time.monotonic()
        parts = _together(ranks, lambda: _extract_own(own, plan, pool=pool, teacher=teacher, ranks=ranks))
        outcomes = sorted((outcome for part in parts for outcome in part.outcomes), key=lambda outcome: outcome.index)
        refusals = duplicates | {index: text for part in parts for index, text in part.refusals.items()}
        texts = {index: text for part in parts for index, text in part.texts.items()}
        by = _statistics(plan, outcomes, utterances, given)
        names = [item.name for item in own if item.index in texts]
        _together(ranks, lambda: _normalize_own(names, plan, by=by, pool=pool, ranks=ranks))
    report = _report(plan, utterances, outcomes, refusals)
    report.statistics = by
    if ranks.is_main:
        report.written = _write_statistics(plan, by, lists[0], given)
        report.written += _write_meta_files(plan, utterances, texts, meta_files)
    report.elapsed_seconds = time.monotonic() - started
    return report


def _together(ranks: Ranks, work: Callable[[], T]) -> list[T]:
    """Every rank's result of its ``work``, once all are done."""
    result, error = None, None
    try:
        result = work()
    except InputError as own_error:
        error = own_error
    parts = ranks.gather((result, error is not None))
    if error is not None:
        raise error
    if any(failed for _, failed in parts):
        raise FailedElsewhereError
    return [result for result, _ in parts]


def _open_corpus(plan: ExtractionPlan, lists: Sequence[Path]) -> list[Utterance]:
    utterances = read_lists(lists)
    prepare_output_folders(plan, utterances)
    return utterances


def _extract_own(
    own: Sequence[Utterance],
    plan: ExtractionPlan,
    *,
    pool: WorkerPool,
    teacher: TeacherModel | None,
    ranks: Ranks,
) -> Part:
    """Check this rank's utterances, then make the features that do not depend on other ranks."""
    prepared = list(_watch(pool.map(prepare, own), len(own), "checking", ranks))
    if teacher is not None:
        prepared = _add_taught(prepared, plan, teacher, ranks)
    refusals = {item.utterance.index: item.refusal for item in prepared if item.refusal is not None}
    good = [item for item in prepared if item.refusal is None]
    outcomes = list(_watch(pool.map(extract, good), len(good), "extracting", ranks))
    if not plan.mels_by_workers:
        outcomes = _add_mels(outcomes, good, plan, ranks)
    refusals |= {outcome.index: outcome.refusal for outcome in outcomes if outcome.refusal is not None}
    texts = {item.utterance.index: item.text for item in good if item.utterance.index not in refusals}
    return Part(outcomes=outcomes, refusals=refusals, texts=texts)


def _watch(items: Iterable[T], total: int, description: str, ranks: Ranks) -> Iterable[T]:
    return progress(items, total=total, desc=description, unit="utterances", enabled=ranks.is_main)


def _add_taught(
    prepared: Sequence[Prepared], plan: ExtractionPlan, teacher: TeacherModel, ranks: Ranks
) -> list[Prepared]:
    """The utterances with what the teacher, in this process, makes of them; their pitch needs its durations."""
    missing = [item for item in prepared if item.refusal is None and set(plan.taught) - set(item.teacher_kept)]
    made = run_teacher(missing, plan, model=teacher, device=ranks.device)
    by_index = {item.utterance.index: item for item in prepared}
    for item in _watch(made, len(missing), f"{teacher_of(plan).model}, teacher-forced", ranks):
        by_index[item.utterance.index] = item
    warn_dropped(prepared, plan)
    return list(by_index.values())


def _normalize_own(
    names: Sequence[str], plan: ExtractionPlan, *, by: dict[str, PitchStatistics], pool: WorkerPool, ranks: Ranks
) -> None:
    if not plan.pitch:
        return
    done = pool.map(functools.partial(normalize_pitch, by=by), names)
    for _ in _watch(done, len(names), "normalizing pitch", ranks):
        pass


def _add_mels(
    outcomes: Sequence[Outcome], good: Sequence[Prepared], plan: ExtractionPlan, ranks: Ranks
) -> list[Outcome]:
    """The outcomes with the mels that this process's GPU makes."""
    by_index = {outcome.index: outcome for outcome in outcomes}
    missing = [item for item in good if mels_are_missing(by_index[item.utterance.index], plan)]
    made = mels_on_device(missing, plan, device=ranks.device)
    for item, refusal in _watch(made, len(missing), "mels on the GPU", ranks):
        outcome = by_index[item.utterance.index]
        if refusal is not None:
            by_index[outcome.index] = Outcome(index=outcome.index, refusal=refusal)
        else:
            by_index[outcome.index] = replace(outcome, made=(*outcome.made, "mels"))
    return list(by_index.values())


def _statistics(
    plan: ExtractionPlan,
    outcomes: Sequence[Outcome],
    utterances: Sequence[Utterance],
    given: PitchStatistics | None,
) -> dict[str, PitchStatistics]:
    """Statistics that normalize each kind of pitch: the given ones, or those of the first list."""
    if given is not None:
        return dict.fromkeys(plan.pitch, given)
    training = [
        outcome for outcome in outcomes if outcome.refusal is None and utterances[outcome.index].list_index == 0
    ]
    if plan.pitch and not training and any(outcome.refusal is None for outcome in outcomes):
        raise InputError("no utterance of the first list is left to take the pitch statistics from")
    if not training:
        return {}
    return {kind: statistics(outcome.moments[kind] for outcome in training) for kind in plan.pitch}


def _report(
    plan: ExtractionPlan, utterances: Sequence[Utterance], outcomes: Sequence[Outcome], refusals: dict[int, str]
) -> Report:
    report = Report(n_utterances=len(utterances))
    for outcome in outcomes:
        if outcome.refusal is None:
            report.made.update(outcome.made)
            report.made.update(plan.pitch)
            report.kept.update(outcome.kept)
            report.speech_seconds += outcome.seconds
    report.refused = [(utterances[index].where, refusals[index]) for index in sorted(refusals)]
    return report


def _write_statistics(
    plan: ExtractionPlan, by: dict[str, PitchStatistics], first_list: Path, given: PitchStatistics | None
) -> list[tuple[Path, str]]:
    written = []
    for kind, values in by.items():
        if given is None:
            path = plan.dataset_path / f"{kind}_stats__{first_list.stem}.json"
            write_json(path, {"mean": values.mean, "std": values.std})
            written.append((path, f"mean {values.mean:.2f} Hz, std {values.std:.2f} Hz"))
    return written


def _write_meta_files(
    plan: ExtractionPlan, utterances: Sequence[Utterance], texts: dict[int, str], meta_files: Sequence[Path]
) -> list[tuple[Path, str]]:
    """``mels/a.pt|durations/a.pt|pitch_char/a.pt|text[|speaker]``, with the columns that there are."""
    columns = ["mels"] * plan.mels + ["durations"] * (plan.durations_from is not None)
    columns += [kind for kind in PITCH_COLUMN if kind in plan.folders][:1]
    written = []
    for list_index, path in enumerate(meta_files):
        lines = []
        for utterance in utterances:
            if utterance.list_index == list_index and utterance.index in texts:
                fields = [f"{folder}/{utterance.name}.pt" for folder in columns] + [texts[utterance.index]]
                fields += [utterance.speaker] if utterance.speaker is not None else []
                lines.append("|".join(fields) + "\n")
        if lines:
            write_text(path, "".join(lines))
            written.append((path, f"{len(lines)} lines"))
    return written
