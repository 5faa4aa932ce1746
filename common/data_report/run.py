"""Make a data report: measure clips in worker processes, compare them with each other, and write the report.

Its charts are Matplotlib histograms as SVG with real text, drawn without a display.
"""

import functools
import io
import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from common.audio.options import AudioOptions
from common.config import AudioConfig, to_plain
from common.data_report.clip import MEASURES, QUIETEST, Clip, measure, with_misfits
from common.data_report.findings import KINDS, REFUSED, Finding, find_issues
from common.data_report.options import Limits, ReportOptions
from common.extraction.batches import map_in_processes, mel_settings
from common.extraction.corpus import read_lists
from common.extraction.options import ExtractionOptions
from common.files import make_folder, write_json, write_text, writing
from common.importing.options import MENDED_BY_IMPORT, import_command
from common.options import option_of
from common.pages.render import render_page, render_template
from common.pages.tables import Measure, Row, cells, read_measures, read_table, setting_rows, text_table
from common.text.cleaners import ENGLISH_V3
from common.text.config import TextConfig
from common.text.symbols import PHONE_SETS

SHOWN = 20  # rows of a table on the terminal; the page has them all
MOST_LISTED = 2000  # rows of a table on the page, which browsers must be able to open; report.json has all

FEW_CLIPS = 20  # of a speaker; with fewer, a voice can't be learned well
PERCENTILES = {"minimum": 0, "low": 5, "median": 50, "high": 95, "maximum": 100}  # of a distribution
OF_SPEAKERS = read_measures("data_report/speakers.tsv").values()  # mostly medians over a speaker's clips
_HINT = "; choose another --report-output"


def _text_config(corpus: ExtractionOptions) -> TextConfig:
    """How transcripts become symbols: as train.py reads them by default; a set of phones makes them phones."""
    symbol_set, cleaners = corpus.symbol_set or TextConfig().symbol_set, corpus.text_cleaners
    if symbol_set in PHONE_SETS:
        return TextConfig(input_type="phone", symbol_set=symbol_set, cleaners=())
    return TextConfig(symbol_set=symbol_set, cleaners=(ENGLISH_V3,) if cleaners is None else cleaners)


def report_on_corpus(corpus: ExtractionOptions, audio: AudioOptions, options: ReportOptions, limits: Limits) -> int:
    """Print the problems of a corpus, and write them as a page and as JSON.

    The exit status is 1 if a recording can't be read or, with --report-strict, if there are any findings.
    """
    folder = options.report_output or corpus.dataset_path / "data_report"
    path, figures = folder / "report.html", folder / "report.json"
    mel_settings(audio, corpus=corpus.dataset_path)  # report wrong options first
    make_folder(folder, _HINT)  # before an hour of measuring, not after it
    dataset, lists, text = corpus.dataset_path, corpus.wav_text_filelist, _text_config(corpus)
    work = functools.partial(measure, dataset=dataset, text=text, pitch_range=corpus.pitch_range)
    clips = list(map_in_processes(work, read_lists(lists), n_workers=corpus.num_workers, desc="measuring"))
    rates = Counter(clip.sound.sampling_rate for clip in clips if clip.sound is not None)
    if rates and "sampling_rate" not in audio.values and audio.of_corpus(dataset) is None:  # use the most common one
        audio = replace(audio, values=audio.values | {"sampling_rate": rates.most_common(1)[0][0]})
    audio_config = mel_settings(audio, corpus=dataset)
    find = functools.partial(find_issues, audio=audio_config, limits=limits)
    findings = find(clips)
    if options.report_checkpoint is not None:
        refused = {one.clip.utterance.index for one in findings if one.level == REFUSED}
        clips = with_misfits(clips, refused, dataset=dataset, checkpoint=options.report_checkpoint)
        findings = find(clips)
    report = _summarize(clips, findings, dataset=dataset, lists=lists, audio=audio_config)
    by_kind = {kind: [one for one in findings if one.kind == kind] for kind in report["kinds"]}
    contents = {"report": report, "tables": _tables(report), "kinds": KINDS, "by_kind": by_kind}
    print(render_template("data_report/terminal.txt", **contents, columns=_columns).strip())
    measures = [MEASURES[name] for name in report["distributions"]]
    wavs = {one.clip.utterance.wav for one in findings}
    settings = to_plain(text) | to_plain(audio_config)
    settings |= {option_of(name): value for name, value in asdict(limits).items()}
    html = render_page(
        "data_report/page.html",
        **contents,
        title=str(dataset),
        players={wav: quote(os.path.relpath(dataset / wav, folder)) for wav in wavs if (dataset / wav).is_file()},
        charts=_charts(clips, limits),
        measures=measures,
        most_rows=MOST_LISTED,
        clips=_clip_rows(clips, {one.clip.utterance.index for one in findings}, measures),
        settings=setting_rows(settings),
    )
    plain = {"dataset": str(dataset), "lists": [*map(str, lists)], "audio": to_plain(audio_config)}
    plain |= {"text": to_plain(text), "limits": {name[len("report_") :]: one for name, one in asdict(limits).items()}}
    with writing(folder, _HINT):
        write_text(path, html)
        write_json(figures, plain | report)
    print(path, figures, sep="\n")
    return int(any(options.report_strict or finding.kind in ("missing", "unreadable") for finding in findings))


def _summarize(
    clips: Sequence[Clip], findings: Sequence[Finding], *, dataset: Path, lists: Sequence[Path], audio: AudioConfig
) -> dict[str, Any]:
    """Return the contents of the report on a corpus; ``audio`` is the expected format."""
    counts = Counter(finding.kind for finding in findings)
    kinds = {kind: {**about, "count": counts[kind]} for kind, about in KINDS.items() if counts[kind]}
    speakers, notes = _speakers(clips), list[str]()
    rate, usual = audio.sampling_rate, AudioConfig().sampling_rate
    if rate != usual:
        notes.append(f"also extract with --sampling-rate {rate}, or convert to {usual} Hz: {import_command(dataset)}")
    few = [f"{one['name']} ({one['n_clips']})" for one in speakers if one["n_clips"] < FEW_CLIPS]
    if few and len(speakers) > 1:
        notes.append(f"speakers with fewer than {FEW_CLIPS} clips: {', '.join(few)}")
    if mended := [KINDS[kind]["title"] for kind in kinds if kind in MENDED_BY_IMPORT]:
        notes.append(f"{', '.join(mended)}: to fix, run {import_command(dataset)}")
    of_lists = [{clip.utterance.speaker for clip in clips if clip.utterance.list_index == n} for n in range(len(lists))]
    for path, own in zip(lists, of_lists):
        if unknown := sorted(map(str, own - of_lists[0])):
            notes.append(f"{path} has speakers that {lists[0]} lacks: {', '.join(unknown)}")
    all_values = {name: _values_of(clips, name) for name in MEASURES}
    seconds = sum(all_values["duration"])
    n_found = len({one.clip.utterance.index for one in findings})
    n_refused = len({one.clip.utterance.index for one in findings if one.level == REFUSED})
    found = f"{n_found} with findings, {n_refused} of them refused" if n_found else "all clean"
    return {
        "headline": f"{len(clips)} clips, {timedelta(seconds=round(seconds))} of speech: {found}",
        "n_clips": len(clips),
        "n_clips_with_findings": n_found,
        "hours": seconds / 3600,
        "distributions": {
            name: {"unit": MEASURES[name].unit}
            | dict(zip(PERCENTILES, np.percentile(values, [*PERCENTILES.values()]).tolist()))
            for name, values in all_values.items()
            if values
        },
        "speakers": speakers,
        "notes": notes,
        "kinds": kinds,
        "findings": [
            {"level": one.level, "kind": one.kind, "index": one.clip.utterance.index}
            | dict(zip(("where", "wav", "reason"), one.row))
            for one in findings
        ],
        "clips": [_to_plain(clip) for clip in clips],
    }


def _speakers(clips: Sequence[Clip]) -> list[dict[str, Any]]:
    """Return the figures of each speaker; the name is "" if the lists have no speakers."""
    rows = []
    for name in sorted({clip.utterance.speaker or "" for clip in clips}):
        own = [clip for clip in clips if (clip.utterance.speaker or "") == name]
        row = {"name": name, "n_clips": len(own), "seconds": sum(_values_of(own, "duration"))}
        values = {measure.key: _values_of(own, measure.figure) for measure in OF_SPEAKERS if measure.figure}
        rows.append(row | {key: float(np.median(one)) if one else None for key, one in values.items()})
    return rows


def _values_of(clips: Iterable[Clip], name: str) -> list[float]:
    """Return a figure's values over the clips that have it."""
    return [clip.figures[name] for clip in clips if name in clip.figures]


def _to_plain(clip: Clip) -> dict[str, Any]:
    item, sound = clip.utterance, {} if clip.sound is None else vars(clip.sound)
    plain: dict[str, Any] = {"where": item.where, "wav": item.wav, "speaker": item.speaker, "n_symbols": clip.n_tokens}
    return plain | {"cleaned_text": clip.cleaned} | sound | clip.figures


def _columns(rows: list[Row]) -> str:
    """Format the first rows in columns, and say how many more there are."""
    return "\n".join(text_table(rows[:SHOWN]) + [f"  ... and {len(rows) - SHOWN} more"] * (len(rows) > SHOWN))


def _clip_rows(clips: Sequence[Clip], with_findings: Collection[int], measures: Sequence[Measure]) -> list[Row]:
    """Return the clips with their figures and text, those with findings first."""
    rows: list[Row] = [("recording", "line", "speaker", *measures, "text")]
    for clip in sorted(clips, key=lambda clip: clip.utterance.index not in with_findings)[:MOST_LISTED]:
        item = clip.utterance
        rows.append((item.wav, item.where, item.speaker or "", *cells(measures, clip.figures), item.text))
    return rows


def _tables(report: Mapping[str, Any]) -> list[tuple[str, list[Row]]]:
    """Return the tables of the page and the terminal, with their titles."""
    distributions: list[Row] = [("figure", "minimum", "5 %", "median", "95 %", "maximum", "unit")]
    for name, values in report["distributions"].items():
        numbers = (MEASURES[name].cell(values[key]) for key in PERCENTILES)
        distributions.append((replace(MEASURES[name], unit=""), *numbers, MEASURES[name].unit))
    speakers: list[Row] = [("speaker", *OF_SPEAKERS)]
    speakers += [(one["name"] or "all", *cells(OF_SPEAKERS, one)) for one in report["speakers"]]
    return [("All clips", distributions), ("Speakers", speakers)]


@matplotlib.rc_context({"font.size": 10.5, "svg.fonttype": "none"})  # page pixels; text, not outlines
def _charts(clips: Sequence[Clip], limits: Limits) -> list[dict[str, str]]:
    """Draw the charts for which ``clips`` have values; return rows of charts.tsv with the ``address`` of each SVG.

    A chart's histograms share their bins, and dashed lines mark the limits that are in range.
    """
    charts = []
    for chart in read_table("data_report/charts.tsv"):
        found = [np.array(_values_of(clips, name)) for name in chart["figures"].split("; ")]
        found = [values[values > QUIETEST] for values in found]
        every = np.concatenate(found)
        if not len(every):
            continue
        figure = Figure(figsize=(4.7, 3.0), layout="constrained")  # inches
        axis = figure.subplots()
        bins = np.histogram_bin_edges(np.round(every, 9), int(np.clip(2 * np.sqrt(len(every)), 10, 40))).tolist()
        for values, label, color in zip(found, chart["labels"].split(", "), chart["colors"].split(", ")):
            axis.hist(values, bins, histtype="stepfilled", label=label, color=f"tab:{color}", alpha=0.6)
        axis.set(xlabel=chart["xlabel"], ylabel="clips")
        axis.yaxis.set_major_locator(MaxNLocator(integer=True))
        left, right = axis.get_xlim()
        for name in filter(None, chart["limits"].split(", ")):
            if left <= (limit := getattr(limits, name)) <= right:
                axis.axvline(limit, color="tab:red", linestyle="--", label="limit")
        if len(axis.get_legend_handles_labels()[1]) > 1:  # above the axes, where it hides nothing
            figure.legend(ncols=4, loc="outside upper center", frameon=False, columnspacing=1.2, handlelength=1.4)
        file = io.StringIO()
        figure.savefig(file, format="svg")
        charts.append({**chart, "address": f"data:image/svg+xml,{quote(file.getvalue(), safe='/:;=+,()@!*?')}"})
    return charts
