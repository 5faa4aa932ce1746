"""Import recordings: write clips, metadata.csv, and import.tsv, a table with the outcome for each recording."""

import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields, replace
from functools import partial
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

from common.audio.levels import loudness_meter
from common.data.loader import end_loader_processes
from common.errors import InputError, OptionError
from common.extraction.batches import map_in_processes
from common.files import make_folder, read_lines, write_text, writing
from common.importing.advice import long_clips
from common.importing.clips import ImportedClip, import_recording
from common.importing.options import SPEAKERS, TABLE, ImportOptions
from common.importing.recordings import clip_names, files_below, first_folders, speakers_of, without_number
from common.importing.transcripts import Transcript, match_transcripts
from common.pages.tables import text_table
from common.signals import ended_by
from common.text.config import TextConfig
from common.text.languages import guess_language
from common.text.options import check_language_tag

METADATA = "metadata.csv"
_MOST_SHOWN = 10  # refusals on the terminal


def import_recordings(source: Path, target: Path, options: ImportOptions) -> int:
    """Make a corpus in ``target`` from the recordings in ``source``; return the exit status, 1 if no clip is made.

    An earlier run's clips are kept if nothing they depend on has changed. If a signal ends the run, finished clips are
    kept. Raises InputError and OptionError.
    """
    _check_folders(source, target)
    files, unread = files_below(source)
    matched, left = match_transcripts(source, files, options.columns)
    left |= unread
    options = replace(options, language=_choose_language(options, matched))
    rows = _rows_of(source, matched, options)
    earlier = _read_table(target / TABLE)
    _check_target(target, earlier)
    done = _keep_clips(earlier, rows, target)
    n_kept = sum(row.is_imported for row in chain(*done.values()))
    make_folder(target / "wavs")
    jobs = [row for row in rows if row.source not in done and not row.reason]
    _write_table(target / TABLE, [*chain(*done.values()), *jobs])  # jobs: what a killed run may leave behind
    work = partial(import_recording, source=source.resolve(), target=target.resolve(), options=options)
    stop = _work_on(jobs, work, done, table=target / TABLE, options=options)
    _remove_clips([job for job in jobs if job.source not in done], target, kept=done)
    done |= {row.source: [row] for row in rows if row.reason}
    results = [one for row in rows for one in done.get(row.source, ())]
    results += [ImportedClip(name, reason=reason) for name, reason in left.items()]
    _write_corpus(target, [row for row in results if row.is_imported])
    _write_table(target / TABLE, results)
    print(*_summary(results, n_recordings=len(rows), n_kept=n_kept, target=target, options=options), sep="\n")
    if stop is not None:
        message, status = ended_by(stop)
        print(f"{message}, {len(rows) - len(done)} recordings remain; run the same command to resume")
        return status
    return int(not any(row.is_imported for row in results))


def _choose_language(options: ImportOptions, matched: Sequence[Transcript]) -> str:
    """Return the language for cutting: --language, else one guessed from the texts; raises OptionError."""
    if options.language is not None:
        check_language_tag(options.language, option="--language")
        return options.language
    found = guess_language(one.text for one in matched)
    return TextConfig.g2p_language if found in ("", "en") else found


def _work_on(
    jobs: Sequence[ImportedClip],
    work: Callable[[ImportedClip], list[ImportedClip]],
    done: dict[str, list[ImportedClip]],
    *,
    table: Path,
    options: ImportOptions,
) -> KeyboardInterrupt | None:
    """Add each finished job's rows to ``done`` and to the table; return the signal that ended the work, if any."""
    loudness_meter(options.sampling_rate)
    try:
        with table.open("a", encoding="utf-8", newline="") as journal:
            for rows in map_in_processes(work, jobs, n_workers=options.num_workers, desc="importing"):
                done[rows[0].source] = rows
                with writing(table):
                    journal.write(_lines(rows))
                    journal.flush()
    except KeyboardInterrupt as stop:
        end_loader_processes()
        return stop
    return None


def _check_folders(source: Path, target: Path) -> None:
    """Refuse a source that isn't a folder, and a target that overlaps it or that another program made."""
    if not source.is_dir():
        raise InputError(f"{source}: no such folder; expected a folder with recordings and transcripts")
    if source.resolve() in target.resolve().parents:
        raise OptionError(f"{target}: is inside {source}, which must not be changed; choose another folder")
    wavs, start = (target / "wavs").resolve(), source.resolve()
    if target.resolve() == start or wavs == start or wavs in start.parents:
        raise OptionError(f"{target}: would overwrite the recordings; choose another folder")
    if any((target / name).exists() for name in (METADATA, SPEAKERS)) and not (target / TABLE).exists():
        raise OptionError(f"{target}: contains a corpus that this command did not make; choose another folder")


def _check_target(target: Path, earlier: Sequence[ImportedClip]) -> None:
    """Raise OptionError if the folder has links, or clips that no ``earlier`` run made."""
    wavs, was_made = target / "wavs", _made_by(earlier)
    for path in (wavs, *wavs.rglob("*"), *(target / name for name in (METADATA, SPEAKERS, TABLE))):
        name = path.with_suffix("").as_posix().removeprefix(f"{wavs.as_posix()}/")
        if path.is_symlink() or (path.suffix == ".wav" and not was_made(name)):
            raise OptionError(f"{path}: was not made by this command; move it, or choose another folder")


def _rows_of(source: Path, matched: Sequence[Transcript], options: ImportOptions) -> list[ImportedClip]:
    """Make a row for each recording with a transcript, refused if the transcript is empty."""
    recordings = [PurePosixPath(one.clip) for one in matched]
    said, how = [one.speaker for one in matched], options.speakers
    if how == "auto" and (source / SPEAKERS).is_file():
        how = "folders"
    names = clip_names(recordings, speakers_of(recordings, said, how)) if matched else []
    rows = []
    for one, name in zip(matched, names):
        about = (source / one.clip).stat()
        row = ImportedClip(one.clip, clip=name, state="", size=about.st_size, modified=about.st_mtime_ns)
        row = replace(row, settings=options.of_clips, text=one.text)
        rows.append(row if one.text else replace(row, state="refused", reason=f"the transcript is empty ({one.where})"))
    return rows


def _keep_clips(
    earlier: Iterable[ImportedClip], rows: Sequence[ImportedClip], target: Path
) -> dict[str, list[ImportedClip]]:
    """Return an earlier run's rows by source if its clips are what this run would make; remove other clips."""
    wanted = {row.source: row for row in rows if not row.reason}
    by_source: dict[str, list[ImportedClip]] = defaultdict(list)
    for row in earlier:
        by_source[row.source].append(row)
    kept, wavs = {}, target / "wavs"
    for source, found in by_source.items():
        now, finished = wanted.get(source), [row for row in found if row.state]
        is_whole = now and any(_made_alike(row, now) for row in finished if not row.part and not row.reason)
        if now and is_whole and all((wavs / f"{row.clip}.wav").is_file() for row in finished if row.is_imported):
            kept[source] = [row if row.part else replace(row, text=now.text) for row in finished]
    _remove_clips([row for source in by_source.keys() - kept.keys() for row in by_source[source]], target, kept=kept)
    return kept


def _made_by(rows: Sequence[ImportedClip]) -> Callable[[str], bool]:
    """Return whether a name is of a clip that was made according to rows, or that a stopped run may have made."""
    unfinished = {row.clip for row in rows if not row.state}
    names = {row.clip for row in rows if row.is_imported} | unfinished
    return lambda name: name in names or without_number(name) in unfinished


def _made_alike(row: ImportedClip, now: ImportedClip) -> bool:
    """Whether an earlier run made what would be made now."""
    facts = [(one.clip, one.size, one.modified, one.settings) for one in (row, now)]
    return facts[0] == facts[1] and (row.state != "cut" or row.text == now.text)


def _remove_clips(rows: Sequence[ImportedClip], target: Path, *, kept: Mapping[str, Sequence[ImportedClip]]) -> None:
    """Remove the clips of rows, and those that a stopped run may have cut from a recording, but not ``kept`` ones."""
    wavs, good = target / "wavs", {row.clip for row in chain(*kept.values()) if row.is_imported}
    was_made = _made_by(rows)
    for path in wavs.rglob("*.wav") if rows else ():
        name = path.relative_to(wavs).with_suffix("").as_posix()
        if name not in good and was_made(name):
            path.unlink()


def _lines(rows: Iterable[ImportedClip]) -> str:
    """Format rows as tab-separated lines."""
    values = ([re.sub(r"[\t\r\n]", " ", str(value)) for value in asdict(row).values()] for row in rows)
    return "".join("\t".join(line) + "\n" for line in values)


def _write_table(path: Path, rows: Sequence[ImportedClip]) -> None:
    write_text(path, "\t".join(one.name for one in fields(ImportedClip)) + "\n" + _lines(rows))


def _read_table(path: Path) -> list[ImportedClip]:
    """Read the rows that an earlier run wrote, except lines truncated by a kill and rows of other versions."""
    if not path.is_file():
        return []
    kinds: dict[str, Any] = {one.name: type(one.default) for one in fields(ImportedClip)}
    heading, *lines = (line.split("\t") for line in read_lines(path))
    rows = []
    for values in lines if heading == [*kinds] else ():
        with suppress(ValueError):
            rows.append(ImportedClip(*(kind(value) for kind, value in zip(kinds.values(), values, strict=True))))
    return rows


def _write_corpus(target: Path, rows: Sequence[ImportedClip]) -> None:
    """Write the clips' transcripts, and the speakers' names if there are several."""
    write_text(target / METADATA, "".join(f"{row.clip}|{re.sub(r' *[|] *', ', ', row.text)}\n" for row in rows))
    speakers = sorted({row.clip.split("/")[0] for row in rows if "/" in row.clip})
    if speakers:
        write_text(target / SPEAKERS, "".join(f"{name}\n" for name in speakers))
    else:
        (target / SPEAKERS).unlink(missing_ok=True)


def _summary(
    results: Sequence[ImportedClip], *, n_recordings: int, n_kept: int, target: Path, options: ImportOptions
) -> list[str]:
    """Return lines about what was done and what was refused."""
    good = [row for row in results if row.is_imported]
    bad = [row for row in results if row.state == "refused"]
    seconds = sum(row.seconds for row in good)
    rates = Counter(row.sampling_rate for row in good if row.sampling_rate != options.sampling_rate)
    speakers = {row.clip.split("/")[0] for row in good if "/" in row.clip}
    folders = {*first_folders([PurePosixPath(row.source) for row in good])} - {None}
    hint = f"; {len(folders)} with --speakers folders" if len(folders) > 1 and options.speakers == "auto" else ""
    rows = [
        ("clips", f"{len(good)}, {seconds / 3600:.2f} h, {n_kept} of them kept from an earlier run"),
        ("speakers", f"{len(speakers)}" if speakers else f"1{hint}"),
        ("resampled", ", ".join(f"{count} from {rate} Hz" for rate, count in rates.most_common()) or "none"),
        ("cut", f"{sum(row.state == 'cut' for row in results)} recordings, with texts in language {options.language}"),
    ]
    lines = [f"{target}: {len(good)} clips from {n_recordings} recordings with transcripts", *text_table(rows)]
    if long := long_clips({row.clip: row.seconds for row in good}):
        lines.append(f"note: {long}")
    if bad:
        lines.append(f"left out: {len(bad)}, all listed in {target / TABLE}")
        named = [(f"{row.source} {row.part}".rstrip(), row.reason) for row in bad[:_MOST_SHOWN]]
        lines += text_table([(name, textwrap.shorten(reason, 120)) for name, reason in named])
    return lines
