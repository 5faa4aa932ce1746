"""A corpus through extract_mels.py: lists in, features, statistics and new lists out, over workers and ranks."""

import functools
import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from common.audio import PitchStatistics, read_pitch_statistics
from common.audio.pitch import statistics
from common.data import read_filelist
from common.distributed import Ranks, own_cores
from common.errors import InputError
from common.extraction.batches import mels_on_device
from common.extraction.features import Extraction, ExtractionPlan, Utterance, attempt, extract, normalize_pitch, prepare
from common.extraction.folders import prepare_output_folders
from common.extraction.options import FRAME_PITCH, ExtractionOptions
from common.extraction.summary import Report
from common.extraction.teacher import TeacherModel, run_teacher, teacher_of, warn_dropped
from common.extraction.workers import map_in_processes
from common.files import check_output_file, write_json, write_text
from common.progress import progress

T = TypeVar("T")

# a training list has one column of pitch: the first of these that was extracted
PITCH_COLUMN = ("pitch_char", "pitch_trichar", "pitch_mel", FRAME_PITCH)


def read_lists(paths: Sequence[Path]) -> list[Utterance]:
    """The utterances of all lists, ``wavs/a.wav|text`` with a speaker's column where there is one."""
    numbered = [
        (list_index, entry.fields, entry.where)
        for list_index, path in enumerate(paths)
        for entry in read_filelist(path, columns=("wav", "text"), optional=("speaker",), may_be_empty=("text",))
    ]
    return [
        Utterance(index, list_index, fields["wav"], fields["text"], fields.get("speaker"), where)
        for index, (list_index, fields, where) in enumerate(numbered)
    ]


def refuse_duplicates(utterances: Sequence[Utterance]) -> dict[int, str]:
    """Index -> reason, for each utterance whose features would overwrite those of an earlier line."""
    first: dict[str, Utterance] = {}
    refused = {}
    for utterance in utterances:
        other = first.setdefault(utterance.name, utterance)
        if other is not utterance:
            refused[utterance.index] = f"{utterance.wav}: duplicate, its files are those of {other.wav} ({other.where})"
    return refused


def _statistics_file(options: ExtractionOptions, kind: str, list_name: str) -> Path:
    return options.dataset_path / f"{kind}_stats__{list_name}.json"


def given_statistics(options: ExtractionOptions) -> tuple[dict[str, PitchStatistics], list[str]]:
    """Kind of pitch -> the statistics that normalize it, where they are not taken from the first list; lines on them.

    They are those of --pitch-mean-std-file, or of the one other list whose pitch was extracted before, unless the
    first list has statistics of its own, which are taken anew.

    Raises:
        InputError: there are several of other lists.
    """
    if options.pitch_mean_std_file is not None:
        return {kind: read_pitch_statistics(options.pitch_mean_std_file) for kind in options.pitch}, []
    name, found, notes = options.wav_text_filelist[0].name, {}, []
    for kind in options.pitch:
        own = _statistics_file(options, kind, Path(name).stem)
        others = sorted(options.dataset_path.glob(_statistics_file(options, kind, "*").name))
        if not others or own in others:
            continue
        if len(others) > 1:
            raise InputError(
                f"{options.dataset_path}: has pitch statistics of {', '.join(one.name for one in others)}, not of "
                f"{name}; give the training list's by --pitch-mean-std-file"
            )
        found[kind] = read_pitch_statistics(others[0])
        notes.append(
            f"{kind} is normalized by {others[0]}, of the list that was extracted before; to take the statistics of "
            f"{name} instead, move that file away"
        )
    return found, notes


def extract_corpus(plan: ExtractionPlan, *, teacher: TeacherModel | None = None, ranks: Ranks) -> Report:
    """Check every utterance of the lists, extract what ``plan`` says, and write one meta file a list.

    ``teacher`` is the plan's, on the device of ``ranks``. Each kind of pitch is normalized by the plan's statistics,
    else by those of the first list, whose file is written. With several ranks each one takes every ``world_size``-th
    utterance; what is written does not depend on their number, nor on that of the workers. An InputError on one rank
    is a FailedElsewhereError on the others.
    """
    options, plan = plan.options, replace(plan, mels_by_workers=ranks.device.type == "cpu")
    utterances = ranks.together(lambda: _open_corpus(plan) if ranks.is_main else [])[0]
    duplicates = refuse_duplicates(utterances)
    own = [item for item in utterances[ranks.rank :: ranks.world_size] if item.index not in duplicates]
    started = time.monotonic()
    work = _Work(plan, teacher, ranks)
    parts = ranks.together(lambda: work.extract(own))
    items = [Extraction(utterances[index], refusal=reason) for index, reason in duplicates.items()]
    items = sorted(itertools.chain(items, *parts), key=lambda item: item.utterance.index)
    good = [item for item in items if item.refusal is None]
    own_statistics = _statistics(good, kinds=[kind for kind in options.pitch if kind not in plan.statistics])
    own_good = [item.utterance.name for item in parts[ranks.rank] if item.refusal is None]
    ranks.together(lambda: work.normalize(own_good, by={**own_statistics, **plan.statistics}))
    report = Report(
        n_utterances=len(utterances), speech_seconds=sum(item.n_samples for item in good) / plan.audio.sampling_rate
    )
    for item in good:
        report.made.update((*item.made, *options.pitch))
        report.kept.update(item.kept)
    report.refused = [(item.utterance.where, item.refusal) for item in items if item.refusal is not None]
    if ranks.is_main:
        report.written = _write_statistics(options, own_statistics) + _write_meta_files(options, good)
    report.elapsed_seconds = time.monotonic() - started
    return report


def _open_corpus(plan: ExtractionPlan) -> list[Utterance]:
    """The utterances of all lists, once it is clear that the features and lists can be written."""
    utterances = read_lists(plan.options.wav_text_filelist)
    for path in plan.options.output_meta_file:
        check_output_file(path)
    prepare_output_folders(plan, utterances)
    return utterances


@dataclass(frozen=True)
class _Work:
    """One rank's share of an extraction."""

    plan: ExtractionPlan
    teacher: TeacherModel | None
    ranks: Ranks

    def extract(self, own: Sequence[Utterance]) -> list[Extraction]:
        """Check utterances, then make the features that do not depend on other ranks."""
        checked = functools.partial(attempt, function=prepare)
        items = self._by_workers(checked, [Extraction(utterance) for utterance in own], "checking")
        if self.teacher is not None:  # first: pitch needs its durations
            make = functools.partial(run_teacher, model=self.teacher)
            description = f"{teacher_of(self.plan).model}, teacher-forced"
            items = self._make_here(items, make, self.plan.options.taught, description)
            warn_dropped(items, self.plan)
        refused = [item for item in items if item.refusal is not None]
        good = [item for item in items if item.refusal is None]
        items = self._by_workers(functools.partial(attempt, function=extract), good, "extracting")
        if self.plan.options.extract_mels and not self.plan.mels_by_workers:
            items = self._make_here(items, mels_on_device, ("mels",), "mels on the GPU")
        return refused + items

    def _make_here(
        self,
        items: Sequence[Extraction],
        make: Callable[..., Iterable[Extraction]],
        folders: Sequence[str],
        description: str,
    ) -> list[Extraction]:
        """The items after ``make``, in this process, of those that lack a file in ``folders``."""
        missing = [item for item in items if item.refusal is None and not {*folders} <= {*item.made, *item.kept}]
        by_index = {item.utterance.index: item for item in items}
        made = make(missing, self.plan, device=self.ranks.device)
        for item in self._watch(made, len(missing), description):
            by_index[item.utterance.index] = item
        return list(by_index.values())

    def normalize(self, names: Sequence[str], *, by: dict[str, PitchStatistics]) -> None:
        """Write the normalized pitch of utterances."""
        if self.plan.options.pitch:
            self._by_workers(functools.partial(normalize_pitch, by=by), names, "normalizing pitch")

    def _by_workers(self, function: Callable[..., T], items: Sequence[object], description: str) -> list[T]:
        """``function(item, plan=plan)`` of every item."""
        n_workers = max(1, min(self.plan.options.num_workers or own_cores(), len(items)))
        done = map_in_processes(functools.partial(function, plan=self.plan), items, n_workers=n_workers)
        return list(self._watch(done, len(items), description))

    def _watch(self, items: Iterable[T], total: int, description: str) -> Iterable[T]:
        return progress(items, total=total, desc=description, unit="utterances", enabled=self.ranks.is_main)


def _statistics(good: Sequence[Extraction], *, kinds: Sequence[str]) -> dict[str, PitchStatistics]:
    """Statistics of these kinds of pitch over the first list."""
    training = [item for item in good if item.utterance.list_index == 0]
    if kinds and good and not training:
        raise InputError("no utterance of the first list is left to take the pitch statistics from")
    return {kind: statistics(item.moments[kind] for item in training) for kind in kinds if training}


def _write_statistics(options: ExtractionOptions, by: dict[str, PitchStatistics]) -> list[tuple[str, str]]:
    written = []
    for kind, values in by.items():
        path = _statistics_file(options, kind, options.wav_text_filelist[0].stem)
        write_json(path, {"mean": values.mean, "std": values.std})
        written.append((str(path), f"mean {values.mean:.2f} Hz, std {values.std:.2f} Hz"))
    return written


def _write_meta_files(options: ExtractionOptions, good: Sequence[Extraction]) -> list[tuple[str, str]]:
    """``mels/a.pt|durations/a.pt|pitch_char/a.pt|text[|speaker]``, with the columns that there are."""
    columns = ["mels"] * options.extract_mels + ["durations"] * options.has_durations
    columns += [kind for kind in PITCH_COLUMN if kind in options.folders][:1]
    written = []
    for list_index, path in enumerate(options.output_meta_file):
        lines = []
        for utterance, text in [(item.utterance, item.text) for item in good]:
            if utterance.list_index == list_index:
                fields = [*(f"{folder}/{utterance.name}.pt" for folder in columns), text, utterance.speaker]
                lines.append("|".join(field for field in fields if field is not None) + "\n")
        if lines:
            write_text(path, "".join(lines))
            written.append((str(path), f"{len(lines)} lines"))
    return written
