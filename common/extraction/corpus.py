"""Extracts a corpus with worker processes: reads lists, and writes features, statistics, settings and new lists."""

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path, PurePosixPath
from signal import Signals
from typing import Any

import torch

from common.audio.options import PITCH_KINDS, SETTINGS, read_audio_config
from common.audio.pitch import PitchStatistics, read_pitch_statistics, statistics
from common.config import to_plain
from common.data.filelist import read_filelist
from common.errors import InputError
from common.extraction.batches import TeacherModel, map_in_processes, run_teacher
from common.extraction.features import Extraction, ExtractionPlan, Utterance, attempt, extract, normalize_pitch, prepare
from common.extraction.options import FRAME_PITCH, HERTZ, ExtractionOptions
from common.extraction.textgrid import UNKNOWN_WORD
from common.files import check_output_file, read_json, write_json, write_text
from common.pages.tables import Row, text_table
from common.text.front_end import TextFrontEnd
from common.text.teacher import TEACHER

# a training list has one column of pitch: the first of these that was extracted
PITCH_COLUMN = ("pitch_char", "pitch_trichar", "pitch_mel", FRAME_PITCH)


@dataclass
class Report:
    """What was made and what was refused."""

    n_utterances: int = 0
    made: Counter[str] = field(default_factory=Counter)  # folder -> files
    kept: Counter[str] = field(default_factory=Counter)  # folder -> files that were complete already
    refused: list[tuple[str, str]] = field(default_factory=list)  # (list.txt:7, reason)
    notes: list[str] = field(default_factory=list)  # lines about pitch statistics, lists, and unknown words
    speech_seconds: float = 0.0
    stopped_by: Signals | None = None


def read_lists(paths: Sequence[Path]) -> list[Utterance]:
    """Read the utterances of all lists, with lines ``wavs/a.wav|text[|speaker]``."""
    utterances: list[Utterance] = []
    for list_index, path in enumerate(paths):
        for entry in read_filelist(path, columns=("wav", "text"), optional=("speaker",), may_be_empty=("text",)):
            wav, text, speaker = entry.fields["wav"], entry.fields["text"], entry.fields.get("speaker")
            utterances.append(Utterance(len(utterances), list_index, wav, text, speaker, entry.where))
    return utterances


def find_statistics(options: ExtractionOptions) -> dict[str, Path]:
    """Return the statistics file of each kind of pitch: --pitch-mean-std-file, or that of the list extracted before.

    A kind is omitted if there is neither, or if the first list has a file, since its statistics are recomputed.
    Raises InputError if several other lists have one.
    """
    if options.pitch_mean_std_file is not None:
        return dict.fromkeys(options.pitch, options.pitch_mean_std_file)
    found = {}
    for kind in options.pitch:
        others = sorted(options.dataset_path.glob(f"{kind}_stats__*.json"))
        if not others or _statistics_file(options, kind) in others:
            continue
        if len(others) > 1:
            names = ", ".join(path.name for path in others)
            advice = "give the training list's with --pitch-mean-std-file"
            raise InputError(f"{options.dataset_path}: {names} are pitch statistics of several lists; {advice}")
        found[kind] = others[0]
    return found


def extract_corpus(
    plan: ExtractionPlan, *, teacher: TeacherModel | None = None, device: torch.device | str = "cpu"
) -> Report:
    """Check every utterance of the lists, extract what ``plan`` says, and write one meta file per list.

    ``teacher`` is the plan's, on ``device``. Each kind of pitch is normalized with the statistics that
    `find_statistics` returns, else with those of the first list, which are written to a file. The output doesn't
    depend on the number of workers.
    """
    options = plan.options
    files = find_statistics(options)
    given = {kind: read_pitch_statistics(path) for kind, path in files.items()}
    work = functools.partial(map_in_processes, n_workers=options.num_workers)
    items = list(work(functools.partial(attempt, plan=plan, function=prepare), _open_corpus(plan), desc="checking"))
    if teacher is not None and plan.teacher is not None:  # first: pitch needs its durations
        desc = f"{plan.teacher.model}, teacher-forced"
        items = run_teacher(items, plan, teacher=teacher, device=device, desc=desc)
        front_end = TextFrontEnd(plan.teacher.text, unknown_symbols=plan.teacher.unknown_symbols)
        front_end.warn_dropped(sum((item.dropped for item in items), Counter()))
    items = list(work(functools.partial(attempt, plan=plan, function=extract), items, desc="extracting"))
    good = [item for item in items if item.refusal is None]
    own = _write_statistics(options, good, kinds=[kind for kind in options.pitch if kind not in given])
    if options.pitch:
        write = functools.partial(normalize_pitch, plan=plan, by=given | own)
        list(work(write, [item.utterance.name for item in good], desc="normalizing pitch"))
    report = Report(
        n_utterances=len(items),
        speech_seconds=sum(item.n_samples for item in good) / plan.audio.sampling_rate,
        made=Counter(folder for item in good for folder in (*item.made, *options.pitch)),
        kept=Counter(folder for item in good for folder in item.kept),
        refused=[(item.utterance.where, item.refusal) for item in items if item.refusal is not None],
    )
    if options.pitch_mean_std_file is None:
        report.notes += [
            f"{one} is normalized with {path}, from the list extracted before" for one, path in files.items()
        ]
    written = [
        (str(_statistics_file(options, kind)), f"mean {values.mean:.2f} Hz, std {values.std:.2f} Hz")
        for kind, values in own.items()
    ]
    report.notes += text_table(written + _write_meta_files(options, good))
    if options.extract_durs_from_textgrids and options.input_type == "phone":
        counts = {item.utterance.wav: count for item in good if (count := item.text.split().count(UNKNOWN_WORD))}
        if counts:
            report.notes.append(
                f"warning: the aligner didn't know words in {len(counts)} utterances ({sum(counts.values())} "
                f"{UNKNOWN_WORD}), such as {next(iter(counts))}; add them to its dictionary, or remove these lines"
            )
    return report


def _open_corpus(plan: ExtractionPlan) -> list[Extraction]:
    """Return the utterances of all lists, after checking that the features and lists can be written.

    An utterance is refused if its features would overwrite those of an earlier line.
    """
    utterances = read_lists(plan.options.wav_text_filelist)
    for path in plan.options.output_meta_file:
        check_output_file(path)
    prepare_output_folders(plan, utterances)
    first: dict[str, Utterance] = {}
    items = []
    for one in utterances:
        other = first.setdefault(one.name, one)
        reason = f"{one.wav}: duplicate, its files would be those of {other.wav} ({other.where})"
        items.append(Extraction(one, refusal=None if other is one else reason))
    return items


def _statistics_file(options: ExtractionOptions, kind: str) -> Path:
    return options.dataset_path / f"{kind}_stats__{options.wav_text_filelist[0].stem}.json"


def _write_statistics(
    options: ExtractionOptions, good: Sequence[Extraction], *, kinds: Sequence[str]
) -> dict[str, PitchStatistics]:
    """Compute the statistics of these kinds of pitch over the first list, and write each to a file."""
    training = [item for item in good if item.utterance.list_index == 0]
    if kinds and good and not training:
        raise InputError("no utterance of the first list is left for the pitch statistics")
    made = {kind: statistics(item.pitches[kind] for item in training) for kind in kinds if training}
    for kind, values in made.items():
        write_json(_statistics_file(options, kind), asdict(values))
    return made


def _write_meta_files(options: ExtractionOptions, good: Sequence[Extraction]) -> list[tuple[str, str]]:
    """Write lists of ``mels/a.pt|durations/a.pt|pitch_char/a.pt|text[|speaker]``, with the columns that exist."""
    columns = ["mels"] * options.extract_mels
    columns += ["durations"] * (options.reads_durations or "durations" in options.folders)
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
    """Return lines that report what was made in ``folders`` and what was refused."""
    n_good = report.n_utterances - len(report.refused)
    duration = timedelta(seconds=round(report.speech_seconds))
    rows: list[Row] = [("features", "made", "already complete")]
    rows += [(f"{folder}/", str(report.made[folder]), str(report.kept[folder])) for folder in folders]
    lines = [f"{n_good} of {report.n_utterances} utterances, {duration} of speech", *text_table(rows), *report.notes]
    if report.refused:
        lines.append(f"refused: {len(report.refused)} of {report.n_utterances} utterances")
        lines += text_table([("line", "reason"), *report.refused])
    return lines


def prepare_output_folders(plan: ExtractionPlan, utterances: Sequence[Utterance]) -> None:
    """Write the settings next to the features; InputError if a folder has features with other settings or models."""
    options, dataset = plan.options, plan.options.dataset_path
    subfolders = sorted({PurePosixPath(utterance.name).parent for utterance in utterances} | {PurePosixPath()})
    folders = {dataset / name / sub: _settings(name, plan) for name in options.folders for sub in subfolders}
    if options.reads_durations and (dataset / "durations" / SETTINGS).is_file():
        check_settings(dataset / "durations", {SETTINGS: to_plain(plan.audio)})
    for folder, settings in folders.items():
        check_settings(folder, settings)
    for folder, settings in folders.items():
        (folder / TEACHER).unlink(missing_ok=True)
        for file in filter(settings.get, settings):
            write_json(folder / file, settings[file])


def _settings(name: str, plan: ExtractionPlan) -> dict[str, dict[str, Any]]:
    """Return what the features ``name`` depend on besides the recordings, by the files to store next to them."""
    settings = {SETTINGS: to_plain(plan.audio), "trim_silence.json": {"trim_silence": plan.options.trim_silence}}
    if name == FRAME_PITCH or name.removesuffix(HERTZ) in PITCH_KINDS:
        settings["pitch_method.json"] = {
            name: getattr(plan.options, name) for name in ("pitch_method", "pitch_min", "pitch_max")
        }
    return settings | {TEACHER: to_plain(plan.teacher) if name in plan.options.taught else {}}  # {}: no teacher


def check_settings(folder: Path, settings: Mapping[str, dict[str, Any]]) -> None:
    """Raise InputError if a folder or a subfolder has features whose settings differ or are missing."""
    if next(folder.rglob("*.pt"), None) is None:
        return
    if not (folder / SETTINGS).is_file():
        raise InputError(f"{folder}: contains features with unknown settings (no {SETTINGS}); move the folder away")
    wanted = {name: value for values in settings.values() for name, value in values.items()}
    stored: dict[str, Any] = {}
    for path in (folder / file for file in settings if (folder / file).is_file()):
        stored |= to_plain(read_audio_config(path)) if path.name == SETTINGS else read_json(path)
    stored["unknown_symbols"] = wanted.get("unknown_symbols")  # it only decides which clips are refused
    names = [name for name in ("model", *wanted) if stored.get(name) != wanted.get(name)]
    if names:
        names = ["model"] if "model" in names else names
        lines = (f"{name}: {stored.get(name)!r} (there), {wanted.get(name)!r} (options)" for name in names)
        raise InputError(
            f"{folder}: was made with other settings: {'; '.join(lines)}; give the same ones or move the folder away"
        )
