"""A data report from lists to files: clips measured by worker processes, compared with each other, and shown."""

import functools
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from common.audio.options import AudioOptions
from common.data_report.charts import draw
from common.data_report.clip import MEASURES, measure
from common.data_report.findings import KINDS, find_issues
from common.data_report.options import Limits, ReportOptions
from common.data_report.summary import MOST_LISTED, PERCENTILES, DataReport, hours, to_json, values_of
from common.data_report.transcripts import with_misfits, worst_transcripts
from common.extraction import ExtractionOptions, map_in_processes, mel_settings, read_lists
from common.files import make_folder, write_json, write_text, writing
from common.options import option_of
from common.pages import (
    Cell,
    Link,
    Measure,
    Recording,
    Row,
    cells,
    read_measures,
    render_page,
    render_template,
    text_table,
)
from common.text import name_symbol

WORST = 10  # transcripts on the terminal
SHOWN = 20  # rows of a table on the terminal; the page has them all

Rows = list[Row]  # the first is the heading

CLIPS = Measure("n_clips", "clips", form=".0f")
LENGTH = Measure("seconds", "length", form=hours)
TIMES = Measure("count", "times", form=".0f")
SPEAKER_MEASURES = (CLIPS, LENGTH, *read_measures("data_report/speakers.tsv").values())
UNUSABLE = ("missing", "unreadable")  # kinds that end with exit status 1
_HINT = "; choose another --report-output"


def report_on_corpus(corpus: ExtractionOptions, audio: AudioOptions, options: ReportOptions, limits: Limits) -> int:
    """Print what is wrong with a corpus, and write it as a page and as JSON.

    The exit status is 1 where a recording cannot be read, and with --report-strict where anything is found.
    """
    folder = options.report_output or corpus.dataset_path / "data_report"
    paths = [folder / "report.html", folder / "report.json"]
    mel_settings(audio, corpus=corpus.dataset_path)  # wrong options are reported first
    make_folder(folder, _HINT)  # before an hour of measuring, not after it
    report = analyze(corpus, audio, limits)
    if options.report_checkpoint is not None:
        report = with_misfits(report, options.report_checkpoint)
    print(render_template("data_report/terminal.txt", **_contents(report), columns=_columns).strip())
    worst = worst_transcripts(report.clips, dataset=corpus.dataset_path, page=paths[0])
    rows = [(one.figure.partition(",")[0], one.name, one.text) for one in worst[:WORST]]
    print("\nTranscripts to check first (with players: Transcripts in the page)", *text_table(rows), sep="\n")
    with writing(folder, _HINT):
        write_text(paths[0], page(report, draw(report), worst))
        write_json(paths[1], to_json(report))
    print(*paths, sep="\n")
    return int(any(options.report_strict or finding.kind in UNUSABLE for finding in report.findings))


def analyze(corpus: ExtractionOptions, audio: AudioOptions, limits: Limits) -> DataReport:
    """Measure every clip of a corpus and find what is wrong with it; raises InputError for a list.

    The sampling rate that nothing gives is that of most recordings.
    """
    dataset, lists, text = corpus.dataset_path, corpus.wav_text_filelist, corpus.prior_text
    utterances = read_lists(lists)
    work = functools.partial(measure, dataset=dataset, text=text, pitch_range=corpus.pitch_range)
    clips = tuple(map_in_processes(work, utterances, n_workers=corpus.num_workers, desc="measuring"))
    rates = Counter(clip.sound.sampling_rate for clip in clips if clip.sound is not None)
    if rates and "sampling_rate" not in audio.values and audio.of_corpus(dataset) is None:
        audio = replace(audio, values=audio.values | {"sampling_rate": rates.most_common(1)[0][0]})
    mels = mel_settings(audio, corpus=dataset)
    findings = find_issues(clips, audio=mels, limits=limits, max_wav_value=corpus.max_wav_value)
    return DataReport(dataset, lists, mels, text, limits, clips, tuple(findings))


def page(report: DataReport, charts: Sequence[dict[str, str]], worst: Sequence[Recording]) -> str:
    """The HTML of the report."""
    measures, contents = [MEASURES[name] for name in report.distributions], _contents(report)
    return render_page(
        "data_report/page.html",
        **contents,
        title=str(report.dataset),
        headline=report.headline,
        charts=charts,
        worst=worst,
        measures=measures,
        most_rows=MOST_LISTED,
        kinds=[
            (Link(about.title, f"kind-{kind}"), CLIPS.cell(len(rows)), about.level, about.advice)
            for kind, about, rows in contents["found"]
        ],
        clips=_clip_rows(report, measures),
        clip_ids=[f"clip{index}" for index in report.listed],
        settings=[
            ("symbol set", report.text.symbol_set),
            ("cleaners", " ".join(report.text.cleaners) or "none"),
            *((name.replace("_", " "), str(value)) for name, value in asdict(report.audio).items()),
            *((option_of(name), f"{value:g}") for name, value in asdict(report.limits).items()),
        ],
    )


def _columns(rows: Rows) -> str:
    """The first rows in columns, and how many more there are."""
    more = len(rows) - SHOWN
    return "\n".join(text_table(rows[:SHOWN]) + [f"  ... and {more} more"] * (more > 0))


def _contents(report: DataReport) -> dict[str, Any]:
    """What the page and the terminal both show."""
    formats: Rows = [("samples", CLIPS), *((name, CLIPS.cell(n_clips)) for name, n_clips in report.formats.items())]
    return {
        "report": report,
        "tables": [
            ("Lists", _list_rows(report)),
            ("Over the clips", _distribution_rows(report)),
            ("Speakers", _speaker_rows(report)),
            ("Files", formats),
            (f"Characters that {report.text.symbol_set} lacks", _character_rows(report)),
        ],
        "found": [
            (kind, KINDS[kind], [(one.where, _link(report, one.index, one.wav), one.reason) for one in found])
            for kind, found in report.by_kind().items()
        ],
    }


def _clip_rows(report: DataReport, measures: Sequence[Measure]) -> Rows:
    """Each clip of the page with its figures, the kinds of its findings, and its text."""
    kinds: dict[int, dict[str, Link]] = defaultdict(dict)
    for finding in report.findings:
        kinds[finding.index][finding.kind] = Link(KINDS[finding.kind].title, f"kind-{finding.kind}")
    has_speakers = any(clip.utterance.speaker for clip in report.listed.values())
    shown = (("speaker",) if has_speakers else ()) + (("findings",) if report.findings else ())
    rows: Rows = [("recording", "line", *shown, *measures, "text")]
    for index, clip in report.listed.items():
        item = clip.utterance
        optional: dict[str, Cell] = {"speaker": item.speaker or "", "findings": tuple(kinds[index].values())}
        chosen = (optional[name] for name in shown)
        rows.append((item.wav, item.where, *chosen, *cells(measures, clip.figures), item.text))
    return rows


def _link(report: DataReport, index: int, text: str) -> Link:
    """A link to a clip of the page, or its text alone where the page leaves the clip out."""
    return Link(text, f"clip{index}" if index in report.listed else "")


def _distribution_rows(report: DataReport) -> Rows:
    """Each figure over the clips; the smallest and the largest value lead to their clips."""
    rows: Rows = [("figure", "minimum", "5 %", "median", "95 %", "maximum", "unit")]
    for name, values in report.distributions.items():
        ends = dict(zip(("minimum", "maximum"), (clip.utterance for clip in report.extremes(name))))
        anchors = {key: (_link(report, one.index, "").anchor, f"{one.wav} ({one.where})") for key, one in ends.items()}
        numbers = (MEASURES[name].cell(values[key], *anchors.get(key, ())) for key in PERCENTILES)
        rows.append((Measure(name, name, meaning=MEASURES[name].meaning), *numbers, MEASURES[name].unit))
    return rows


def _speaker_rows(report: DataReport) -> Rows:
    """Each speaker's figures."""
    rows: Rows = [("speaker", *SPEAKER_MEASURES)]
    return rows + [(name or "all", *cells(SPEAKER_MEASURES, figures)) for name, figures in report.speakers.items()]


def _list_rows(report: DataReport) -> Rows:
    """Each list's clips and their length."""
    rows: Rows = [("list", CLIPS, LENGTH)]
    for index, path in enumerate(report.lists):
        clips = [clip for clip in report.clips if clip.utterance.list_index == index]
        rows.append((str(path), CLIPS.cell(len(clips)), LENGTH.cell(sum(values_of(clips, "duration")))))
    return rows


def _character_rows(report: DataReport) -> Rows:
    """The characters of transcripts that the symbol set lacks, and where they are."""
    rows: Rows = [("character", TIMES, CLIPS, "where")]
    for one in report.unknown_characters:
        where = ", ".join(one["places"]) + (", ..." if one["n_clips"] > len(one["places"]) else "")
        rows.append((name_symbol(one["symbol"]), *cells((TIMES, CLIPS), one), where))
    return rows
