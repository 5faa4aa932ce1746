"""A whole corpus through extract_mels.py: lists in, features, statistics and new lists out, over workers and ranks."""

import functools
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TypeVar

from common.audio.pitch import KINDS, METHODS, statistics
from common.audio.pitch_statistics import PitchStatistics
from common.config import AudioConfig, differences, from_plain, to_plain
from common.data.filelist import read_filelist
from common.distributed import Ranks
from common.errors import InputError
from common.extraction.batches import mels_on_device
from common.extraction.features import (
    FRAME_PITCH,
    FROM_FILES,
    HERTZ,
    ExtractionPlan,
    Outcome,
    Prepared,
    Utterance,
    extract,
    mels_are_missing,
    normalise_pitch,
    prepare,
)
from common.extraction.teacher import Follow, claim, follow, is_missing, warn_dropped
from common.extraction.workers import WorkerPool
from common.files import read_json, write_json, write_text
from common.progress import progress

T = TypeVar("T")

SETTINGS = "audio.json"  # beside the features: the AudioConfig they were made with
TRIMMING = "trim_silence.json"  # beside them: {"trim_silence": seconds or null}
METHOD = "pitch_method.json"  # beside pitch: {"pitch_method": how it was estimated}
# a training list has one column of pitch: the first of these that was extracted
PITCH_COLUMN = ("pitch_char", "pitch_trichar", "pitch_mel", FRAME_PITCH)


@dataclass
class Report:
    """What was made and what was refused."""

    n_utterances: int = 0
    made: Counter = field(default_factory=Counter)  # folder -> files
    kept: Counter = field(default_factory=Counter)  # folder -> files that were whole already
    refused: list[tuple[str, str]] = field(default_factory=list)  # (list.txt:7, reason)
    statistics: dict[str, PitchStatistics] = field(default_factory=dict)  # kind of pitch ->
    written: list[tuple[Path, str]] = field(default_factory=list)  # single files, and a word on each
    speech_seconds: float = 0.0
    elapsed_seconds: float = 0.0  # from the first check, once the workers have started, to the last file


class FailedElsewhereError(Exception):
    """Another rank has failed and says why; this one only has to end."""


@dataclass(frozen=True)
class Part:
    """What one rank has made of its share."""

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


def claim_folders(plan: ExtractionPlan, utterances: Sequence[Utterance]) -> None:
    """Refuse to mix features of different settings in one folder; write the settings beside the features."""
    subfolders = {PurePosixPath(utterance.name).parent for utterance in utterances} | {PurePosixPath()}
    folders = [(plan.dataset_path / name / sub, name) for name in plan.folders for sub in sorted(subfolders)]
    read_only = [plan.dataset_path / "durations"] if plan.durations_from == FROM_FILES else []
    for folder in [folder for folder, _ in folders] + read_only:
        _check_settings(folder, plan, is_ours=folder not in read_only)
    for folder in [folder for folder, name in folders if _holds_pitch(name)]:
        _check_method(folder, plan)
    for folder, name in folders:
        claim(folder, plan, is_followers=name in plan.followed)
        if not (folder / SETTINGS).is_file():
            if _holds_pitch(name):
                write_json(folder / METHOD, {"pitch_method": plan.pitch_method})
            write_json(folder / TRIMMING, {"trim_silence": plan.trim_silence})
            write_json(folder / SETTINGS, to_plain(plan.audio))


def _check_settings(folder: Path, plan: ExtractionPlan, *, is_ours: bool) -> None:
    path = folder / SETTINGS
    if not path.is_file():
        if is_ours and next(folder.glob("*.pt"), None) is not None:
            raise InputError(f"{folder}: holds features of unknown settings (no {SETTINGS}); move the folder away")
        return
    names = ("there", "options")
    lines = differences(from_plain(AudioConfig, read_json(path), where=str(path)), plan.audio, names=names)
    trimming = folder / TRIMMING
    seconds = read_json(trimming).get("trim_silence") if trimming.is_file() else None
    if is_ours and seconds != plan.trim_silence:
        lines.append(f"trim_silence: {seconds} ({names[0]}), {plan.trim_silence} ({names[1]})")
    if lines:
        raise InputError(
            f"{folder}: was made with other settings: {'; '.join(lines)}; give the same ones or move the folder away"
        )


def _holds_pitch(name: str) -> bool:
    return name == FRAME_PITCH or name.removesuffix(HERTZ) in KINDS


def _check_method(folder: Path, plan: ExtractionPlan) -> None:
    """Folders of before there was a choice hold Praat's pitch."""
    path = folder / METHOD
    if not (folder / SETTINGS).is_file():
        return
    there = read_json(path).get("pitch_method") if path.is_file() else METHODS[0]
    if there != plan.pitch_method:
        raise InputError(
            f"{folder}: was made with --pitch-method {there}, not {plan.pitch_method}; give the same one or move the "
            "folder away"
        )


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
    follower: Follow | None = None,
    ranks: Ranks,
    n_workers: int,
) -> Report:
    """Check every utterance of ``lists``, extract what ``plan`` says, and write one meta file a list.

    ``follower`` is the plan's, on the device of ``ranks``. Pitch is normalised by ``given``, else by the statistics of
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
        parts = _together(ranks, lambda: _extract_own(own, plan, pool=pool, follower=follower, ranks=ranks))
        outcomes = sorted((outcome for part in parts for outcome in part.outcomes), key=lambda outcome: outcome.index)
        refusals = duplicates | {index: text for part in parts for index, text in part.refusals.items()}
        texts = {index: text for part in parts for index, text in part.texts.items()}
        by = _statistics(plan, outcomes, utterances, given)
        names = [item.name for item in own if item.index in texts]
        _together(ranks, lambda: _normalise_own(names, plan, by=by, pool=pool, ranks=ranks))
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
    claim_folders(plan, utterances)
    return utterances


def _extract_own(
    own: Sequence[Utterance], plan: ExtractionPlan, *, pool: WorkerPool, follower: Follow | None, ranks: Ranks
) -> Part:
    """Check this rank's utterances, then make what can be made without looking at the others."""
    watch = functools.partial(progress, unit="utterances", enabled=ranks.is_main)
    prepared = list(watch(pool.map(prepare, own), total=len(own), desc="checking"))
    if plan.followed:
        prepared = _add_followed(prepared, plan, follower, ranks)
    refusals = {item.utterance.index: item.refusal for item in prepared if item.refusal is not None}
    good = [item for item in prepared if item.refusal is None]
    outcomes = list(watch(pool.map(extract, good), total=len(good), desc="extracting"))
    if not plan.mels_by_workers:
        outcomes = _add_mels(outcomes, good, plan, ranks)
    refusals |= {outcome.index: outcome.refusal for outcome in outcomes if outcome.refusal is not None}
    texts = {item.utterance.index: item.text for item in good if item.utterance.index not in refusals}
    return Part(outcomes=outcomes, refusals=refusals, texts=texts)


def _add_followed(prepared: Sequence[Prepared], plan: ExtractionPlan, follower: Follow, ranks: Ranks) -> list[Prepared]:
    """The utterances with what the follower, in this process, makes of them; their pitch needs its durations."""
    missing = [item for item in prepared if item.refusal is None and is_missing(item, plan)]
    watched = progress(
        follow(missing, plan, network=follower, device=ranks.device),
        total=len(missing),
        desc=f"{plan.follower.model} listens",
        unit="utterances",
        enabled=ranks.is_main,
    )
    by_index = {item.utterance.index: item for item in prepared} | {item.utterance.index: item for item in watched}
    warn_dropped(prepared, plan)
    return list(by_index.values())


def _normalise_own(
    names: Sequence[str], plan: ExtractionPlan, *, by: dict[str, PitchStatistics], pool: WorkerPool, ranks: Ranks
) -> None:
    if not plan.pitch:
        return
    done = pool.map(functools.partial(normalise_pitch, by=by), names)
    for _ in progress(done, total=len(names), desc="normalising pitch", unit="utterances", enabled=ranks.is_main):
        pass


def _add_mels(
    outcomes: Sequence[Outcome], good: Sequence[Prepared], plan: ExtractionPlan, ranks: Ranks
) -> list[Outcome]:
    """The outcomes with the mels that this process's GPU makes."""
    by_index = {outcome.index: outcome for outcome in outcomes}
    missing = [item for item in good if mels_are_missing(by_index[item.utterance.index], plan)]
    watched = progress(
        mels_on_device(missing, plan, device=ranks.device),
        total=len(missing),
        desc="mels on the GPU",
        unit="utterances",
        enabled=ranks.is_main,
    )
    for item, refusal in watched:
        outcome = by_index[item.utterance.index]
        if refusal is not None:
            by_index[outcome.index] = Outcome(index=outcome.index, refusal=refusal)
        else:
            by_index[outcome.index] = replace(outcome, made=(*outcome.made, "mels"))
    return list(by_index.values())


def _statistics(
    plan: ExtractionPlan, outcomes: Sequence[Outcome], utterances: Sequence[Utterance], given: PitchStatistics | None
) -> dict[str, PitchStatistics]:
    """Statistics that normalise each kind of pitch: the given ones, or those of the first list."""
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
