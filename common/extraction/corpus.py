"""A corpus through extract_mels.py: lists in, features, statistics and new lists out, over workers and ranks."""

import functools
import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from signal import Signals

from common.audio.pitch import PitchStatistics, read_pitch_statistics, statistics
from common.data.filelist import read_filelist
from common.distributed import Ranks
from common.errors import InputError
from common.extraction.batches import TeacherModel, map_in_processes, run_teacher, warn_dropped
from common.extraction.features import Extraction, ExtractionPlan, Utterance, attempt, extract, normalize_pitch, prepare
from common.extraction.folders import prepare_output_folders
from common.extraction.options import FRAME_PITCH, ExtractionOptions
from common.extraction.textgrid import UNKNOWN_WORD
from common.files import check_output_file, write_json, write_text
from common.pages.tables import Number, Row, text_table
from common.text.options import written_options

# a training list has one column of pitch: the first of these that was extracted
PITCH_COLUMN = ("pitch_char", "pitch_trichar", "pitch_mel", FRAME_PITCH)


@dataclass
class Report:
    """What was made and what was refused."""

    n_utterances: int = 0
    made: Counter[str] = field(default_factory=Counter)  # folder -> files
    kept: Counter[str] = field(default_factory=Counter)  # folder -> files that were complete already
    unknown_words: list[tuple[str, int]] = field(default_factory=list)  # (wavs/a.wav, how many it has)
    refused: list[tuple[str, str]] = field(default_factory=list)  # (list.txt:7, reason)
    written: list[tuple[str, str]] = field(default_factory=list)  # single files, with a description
    speech_seconds: float = 0.0
    stopped_by: Signals | None = None


def read_lists(paths: Sequence[Path]) -> list[Utterance]:
    """The utterances of all lists, ``wavs/a.wav|text`` with a speaker's column where there is one."""
    utterances: list[Utterance] = []
    for list_index, path in enumerate(paths):
        for entry in read_filelist(path, columns=("wav", "text"), optional=("speaker",), may_be_empty=("text",)):
            wav, text, speaker = (entry.fields.get(name) for name in ("wav", "text", "speaker"))
            utterances.append(Utterance(len(utterances), list_index, wav or "", text or "", speaker, entry.where))
    return utterances


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
        note = f"{kind} is normalized by {others[0]}, of the list that was extracted before; to take the statistics of "
        notes.append(f"{note}{name} instead, move that file away")
    return found, notes


def extract_corpus(plan: ExtractionPlan, *, teacher: TeacherModel | None = None, ranks: Ranks) -> Report:
    """Check every utterance of the lists, extract what ``plan`` says, and write one meta file a list.

    ``teacher`` is the plan's, on the device of ``ranks``. Each kind of pitch is normalized by the plan's statistics,
    else by those of the first list, whose file is written. With several ranks each one takes every ``world_size``-th
    utterance; what is written does not depend on their number, nor on that of the workers.
    """
    options = plan.options
    every = ranks.gather(_open_corpus(plan) if ranks.is_main else [])[0]
    parts = ranks.gather(_extract(every[ranks.rank :: ranks.world_size], plan, teacher, ranks))
    items = sorted(itertools.chain(*parts), key=lambda item: item.utterance.index)
    good = [item for item in items if item.refusal is None]
    own_statistics = _statistics(good, kinds=[kind for kind in options.pitch if kind not in plan.statistics])
    if options.pitch:
        names = [item.utterance.name for item in parts[ranks.rank] if item.refusal is None]
        write = functools.partial(normalize_pitch, plan=plan, by={**own_statistics, **plan.statistics})
        n_workers, desc = options.num_workers, "normalizing pitch"
        ranks.gather(list(map_in_processes(write, names, n_workers=n_workers, desc=desc, enabled=ranks.is_main)))
    report = Report(
        n_utterances=len(every),
        speech_seconds=sum(item.n_samples for item in good) / plan.audio.sampling_rate,
        made=Counter(folder for item in good for folder in (*item.made, *options.pitch)),
        kept=Counter(folder for item in good for folder in item.kept),
        refused=[(item.utterance.where, item.refusal) for item in items if item.refusal is not None],
    )
    if options.extract_durs_from_textgrids and options.input_type == "phone":
        counts = ((item.utterance.wav, item.text.split().count(UNKNOWN_WORD)) for item in good)
        report.unknown_words = [(wav, count) for wav, count in counts if count]
    if ranks.is_main:
        report.written = _write_statistics(options, own_statistics) + _write_meta_files(options, good)
    return report


def _open_corpus(plan: ExtractionPlan) -> list[Extraction]:
    """The utterances of all lists, once it is clear that the features and lists can be written.

    Those are refused whose features would overwrite those of an earlier line.
    """
    utterances = read_lists(plan.options.wav_text_filelist)
    for path in plan.options.output_meta_file:
        check_output_file(path)
    prepare_output_folders(plan, utterances)
    first: dict[str, Utterance] = {}
    items = []
    for one in utterances:
        other = first.setdefault(one.name, one)
        reason = f"{one.wav}: duplicate, its files are those of {other.wav} ({other.where})"
        items.append(Extraction(one, refusal=None if other is one else reason))
    return items


def _extract(
    items: Sequence[Extraction], plan: ExtractionPlan, teacher: TeacherModel | None, ranks: Ranks
) -> list[Extraction]:
    """One rank's utterances, checked, with the features that do not depend on other ranks."""
    work = functools.partial(map_in_processes, n_workers=plan.options.num_workers, enabled=ranks.is_main)
    items = list(work(functools.partial(attempt, plan=plan, function=prepare), items, desc="checking"))
    if teacher is not None and plan.teacher is not None:  # first: pitch needs its durations
        desc = f"{plan.teacher.model}, teacher-forced"
        items = run_teacher(items, plan, teacher=teacher, ranks=ranks, desc=desc)
        warn_dropped(items, plan.teacher)
    return list(work(functools.partial(attempt, plan=plan, function=extract), items, desc="extracting"))


def _statistics(good: Sequence[Extraction], *, kinds: Sequence[str]) -> dict[str, PitchStatistics]:
    """Statistics of these kinds of pitch over the first list."""
    training = [item for item in good if item.utterance.list_index == 0]
    if kinds and good and not training:
        raise InputError("no utterance of the first list is left to take the pitch statistics from")
    return {kind: statistics(item.pitches[kind] for item in training) for kind in kinds if training}


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


def table(report: Report, folders: Sequence[str]) -> list[str]:
    """Lines that say what was made in ``folders``, and what was refused."""
    n_good = report.n_utterances - len(report.refused)
    duration = timedelta(seconds=round(report.speech_seconds))
    rows: list[Row] = [("features", "made", "already complete")]
    for folder in folders:
        counts = (report.made[folder], report.kept[folder])
        rows.append((f"{folder}/", *(Number(str(count), value=count) for count in counts)))
    lines = [f"{n_good} of {report.n_utterances} utterances, {duration} of speech"]
    lines += [*text_table(rows), *text_table(report.written)]
    if found := report.unknown_words:
        lines.append(
            f"warning: the aligner did not know words of {len(found)} utterances ({sum(dict(found).values())} "
            f"{UNKNOWN_WORD}), such as {found[0][0]}; add them to its dictionary, or leave these lines out"
        )
    if report.refused:
        lines.append(f"refused: {len(report.refused)} of {report.n_utterances} utterances")
        lines += text_table([("line", "reason"), *report.refused])
    return lines


def hints(plan: ExtractionPlan) -> list[str]:
    """Lines that say with which options to train on what was made."""
    lines = []
    if plan.options.extract_durations and plan.teacher is not None:
        lines.append(f"durations are of the symbols of {written_options(plan.teacher.text)}; train with these options")
    return lines
