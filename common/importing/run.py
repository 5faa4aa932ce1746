"""Importing a folder of recordings: clips, metadata.csv, and import.tsv, a table that says what became of each."""

import csv
import io
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from common.errors import InputError, OptionError
from common.extraction import map_in_processes
from common.files import make_folder, read_lines, write_text, writing
from common.importing.advice import long_clips
from common.importing.clips import ImportedClip, import_clip, loudness_meter
from common.importing.options import SPEAKERS, TABLE, ImportOptions
from common.importing.recordings import clip_names, files_below, first_folders, speakers_of
from common.importing.transcripts import Transcript, match_transcripts
from common.pages import text_table
from common.signals import StopSignals

METADATA = "metadata.csv"
_MOST_SHOWN = 10  # refusals on the terminal


def import_recordings(source: Path, target: Path, options: ImportOptions) -> int:
    """Make a corpus of the recordings in ``source`` in the folder ``target``; the exit status, 1 where no clip is made.

    An earlier run's clips are kept where neither their recording nor the settings have changed. A signal ends the run
    after the clips that are being made, with status 128 + its number.

    Raises:
        InputError: ``source`` has no recordings or no transcripts.
        OptionError: the folders overlap, or ``target`` holds something else.
    """
    _check_folders(source, target)
    matched, left = match_transcripts(source, files_below(source))
    rows = _rows_of(source, matched, options)
    refused = [ImportedClip(name, reason=reason) for name, reason in left.items()]
    kept = _keep_clips(_read_table(target / TABLE), rows, target)
    make_folder(target / "wavs")
    _write_table(target / TABLE, [*kept.values()])
    jobs = [row for row in rows if row.source not in kept and not row.reason]
    done = dict(kept)
    work = partial(import_clip, source=source.resolve(), target=target.resolve(), options=options)
    if jobs:
        loudness_meter(options.sampling_rate)
    with StopSignals() as stop, (target / TABLE).open("a", encoding="utf-8", newline="") as journal:
        for row in map_in_processes(work, jobs, n_workers=options.num_workers, desc="importing") if jobs else ():
            done[row.source] = row
            with writing(target / TABLE):
                journal.write(_lines([row]))
                journal.flush()
            if stop.received is not None:
                break
    results = [done.get(row.source, row) for row in rows if row.source in done or row.reason]
    texts = {one.clip: one.text for one in matched}
    _write_corpus(target, [row for row in results if row.is_imported], texts)
    _write_table(target / TABLE, [*results, *refused])
    print(*_summary(results, refused, n_kept=len(kept), target=target, options=options), sep="\n")
    if stop.received is not None:
        n_left = len(rows) - len(results)
        print(f"stopped by {stop.received.name}, {n_left} recordings are left; the same command resumes")
        return 128 + stop.received
    return int(not any(row.is_imported for row in results))


def start_corpus(source: Path, target: Path) -> None:
    """Prepare a folder for a corpus of ``source``, a folder or recording; clips that an earlier run made are removed.

    Raises OptionError where the folders overlap, or ``target`` holds something else.
    """
    if source.is_dir():
        _check_folders(source, target)
    else:
        _check_target(source.parent, target)
    _keep_clips(_read_table(target / TABLE), [], target)
    make_folder(target / "wavs")
    _write_table(target / TABLE, [])


def finish_corpus(
    rows: Sequence[ImportedClip],
    refused: Sequence[ImportedClip],
    texts: dict[str, str],
    *,
    target: Path,
    options: ImportOptions,
) -> int:
    """Write the transcripts and the table, and print what was done; the exit status, 1 where there is no clip.

    ``rows`` are of clips that were made, or not; ``texts`` are theirs by source.
    """
    _write_corpus(target, [row for row in rows if row.is_imported], texts)
    _write_table(target / TABLE, [*rows, *refused])
    of = "stretches of the recordings"
    print(*_summary(rows, refused, n_kept=0, target=target, options=options, of=of), sep="\n")
    return int(not any(row.is_imported for row in rows))


def _check_folders(source: Path, target: Path) -> None:
    if not source.is_dir():
        found = "a file; to cut one long recording give its --text" if source.exists() else "no such folder"
        raise InputError(f"{source}: {found}; expected a folder with recordings and transcripts")
    if source.resolve() in target.resolve().parents:
        raise OptionError(f"{target}: lies in {source}, which is not to be changed; name another folder")
    _check_target(source, target)


def _check_target(source: Path, target: Path) -> None:
    wavs, start = (target / "wavs").resolve(), source.resolve()
    if target.resolve() == start or wavs == start or wavs in start.parents:
        raise OptionError(f"{target}: would overwrite the recordings; name another folder")
    if (target / METADATA).exists() and not (target / TABLE).exists():
        raise OptionError(f"{target}: holds a corpus that this command did not make; name another folder")


def _rows_of(source: Path, matched: Sequence[Transcript], options: ImportOptions) -> list[ImportedClip]:
    """A row for each recording with a transcript, refused where there is no text."""
    recordings = [PurePosixPath(one.clip) for one in matched]
    said, how = [one.speaker for one in matched], options.speakers
    if how == "auto" and (source / SPEAKERS).is_file():
        how = "folders"
    names = clip_names(recordings, speakers_of(recordings, said, how)) if matched else []
    rows = []
    for one, name in zip(matched, names):
        about = (source / one.clip).stat()
        row = ImportedClip(one.clip, name, "", "", about.st_size, about.st_mtime_ns, options.of_clips)
        rows.append(row if one.text else replace(row, state="refused", reason=f"the transcript is empty ({one.where})"))
    return rows


def _keep_clips(earlier: Iterable[ImportedClip], rows: Sequence[ImportedClip], target: Path) -> dict[str, ImportedClip]:
    """Source -> row of an earlier run whose clip is as it would be made again; the other clips are removed."""
    wanted = {row.source: row for row in rows if not row.reason}
    kept, wavs = {}, target / "wavs"
    for row in (one for one in earlier if one.is_imported):
        path, now = wavs / f"{row.clip}.wav", wanted.get(row.source)
        facts = ("clip", "size", "modified", "settings")
        if now and path.is_file() and all(getattr(row, name) == getattr(now, name) for name in facts):
            kept[row.source] = row
        else:
            path.unlink(missing_ok=True)
    return kept


def _lines(rows: Iterable[ImportedClip], *, heading: bool = False) -> str:
    """Rows as tab-separated lines."""
    text = io.StringIO()
    names = [one.name for one in fields(ImportedClip)]
    writer = csv.DictWriter(text, names, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_NONE, quotechar=None)
    if heading:
        writer.writeheader()
    for row in rows:
        writer.writerow({name: re.sub(r"[\t\r\n]", " ", str(value)) for name, value in asdict(row).items()})
    return text.getvalue()


def _write_table(path: Path, rows: Sequence[ImportedClip]) -> None:
    write_text(path, _lines(rows, heading=True))


def _read_table(path: Path) -> list[ImportedClip]:
    """The rows that an earlier run wrote; one that a kill has cut is left out, and so are those of other versions."""
    if not path.is_file():
        return []
    kinds: dict[str, Any] = {
        one.name: type(one.default) if one.name != "source" else str for one in fields(ImportedClip)
    }
    rows = []
    for values in csv.DictReader(read_lines(path), delimiter="\t", quoting=csv.QUOTE_NONE):
        try:
            rows.append(ImportedClip(**{name: kind(values[name]) for name, kind in kinds.items()}))
        except (KeyError, TypeError, ValueError):
            continue
    return rows


def _write_corpus(target: Path, rows: Sequence[ImportedClip], texts: dict[str, str]) -> None:
    """The transcripts of the clips, and the names of their speakers where there are several."""
    lines = [f"{row.clip}|{re.sub(r' *[|] *', ', ', texts[row.source])}\n" for row in rows]
    write_text(target / METADATA, "".join(lines))
    speakers = sorted({row.clip.split("/")[0] for row in rows if "/" in row.clip})
    if speakers:
        write_text(target / SPEAKERS, "".join(f"{name}\n" for name in speakers))
    else:
        (target / SPEAKERS).unlink(missing_ok=True)


def _summary(
    results: Sequence[ImportedClip],
    unmatched: Sequence[ImportedClip],
    *,
    n_kept: int,
    target: Path,
    options: ImportOptions,
    of: str = "recordings with transcripts",
) -> list[str]:
    """Lines on what was done and what was refused."""
    good = [row for row in results if row.is_imported]
    bad = [*(row for row in results if not row.is_imported), *unmatched]
    seconds = sum(row.seconds for row in good)
    rates = Counter(row.sampling_rate for row in good if row.sampling_rate != options.sampling_rate)
    cut = [row.cut_at_start + row.cut_at_end for row in good]
    gains = sorted(row.gain for row in good) or [0.0]
    speakers = {row.clip.split("/")[0] for row in good if "/" in row.clip}
    folders = {*first_folders([PurePosixPath(row.source) for row in good])} - {None}
    hint = f"; by --speakers folders {len(folders)}" if len(folders) > 1 and options.speakers == "auto" else ""
    limited = sum(row.loudness < options.loudness - 0.1 for row in good)
    rows = [
        ("clips", f"{len(good)}, {seconds / 3600:.2f} h, {n_kept} of them kept from an earlier run"),
        ("speakers", f"{len(speakers)}" if speakers else f"1{hint}"),
        ("resampled", ", ".join(f"{count} from {rate} Hz" for rate, count in rates.most_common()) or "none"),
        ("mixed down", f"{sum(row.channels > 1 for row in good)}"),
        ("silence cut", f"{sum(cut):.1f} s, from {sum(one >= 0.01 for one in cut)} clips"),
        ("gain", f"{gains[0]:+.1f} to {gains[-1]:+.1f} dB, {limited} limited by peaks"),
    ]
    lines = [f"{target}: {len(good)} clips of {len(results)} {of}", *text_table(rows)]
    if dull := sum(count for rate, count in rates.items() if rate < options.sampling_rate):
        lines.append(f"note: {dull} recordings have a lower sampling rate; their clips lack the high sounds")
    if long := long_clips({row.clip: row.seconds for row in good}):
        lines.append(f"note: {long}")
    if bad:
        lines.append(f"left out: {len(bad)}, all of them in {target / TABLE}")
        lines += text_table([(row.source, textwrap.shorten(row.reason, 120)) for row in bad[:_MOST_SHOWN]])
    return lines
