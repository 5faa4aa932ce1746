"""A data report from lists to files: clips measured by worker processes, then compared with each other."""

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from common.config import AudioConfig, TextConfig
from common.data_report.charts import draw
from common.data_report.clip import measure
from common.data_report.findings import find_issues
from common.data_report.options import Limits
from common.data_report.page import page, terminal
from common.data_report.summary import DataReport, to_json
from common.extraction import map_in_processes, read_lists
from common.files import check_apart, make_folder, write_json, write_text, writing
from common.progress import progress

UNUSABLE = ("missing", "unreadable")  # kinds that end with exit status 1
_HINT = "; choose another --report-output"


def analyze_corpus(
    lists: Sequence[Path],
    *,
    dataset: Path,
    audio_of: Callable[[int | None], AudioConfig],
    text: TextConfig,
    limits: Limits,
    max_wav_value: float | None = None,
    n_workers: int,
) -> DataReport:
    """Measure every clip of ``lists`` and find what is wrong with it.

    ``audio_of`` gives the mel-spectrograms that will be made, from the sampling rate (Hz) of most recordings, None if
    none can be read. A list that cannot be read is an InputError; a recording that cannot is a finding.
    """
    utterances = read_lists(lists)
    of_clip = functools.partial(measure, dataset=dataset, text=text)
    done = map_in_processes(of_clip, utterances, n_workers=max(1, min(n_workers, len(utterances))))
    clips = list(progress(done, total=len(utterances), desc="measuring", unit="clips"))
    clips.sort(key=lambda clip: clip.utterance.index)
    rates = Counter(clip.sound.sampling_rate for clip in clips if clip.sound is not None)
    audio = audio_of(rates.most_common(1)[0][0] if rates else None)
    findings = find_issues(clips, audio=audio, limits=limits, max_wav_value=max_wav_value)
    return DataReport(dataset, tuple(lists), audio, text, limits, tuple(clips), tuple(findings))


def write_report(
    folder: Path, analyze: Callable[[], DataReport], *, read: Sequence[tuple[str, Path]], strict: bool
) -> int:
    """Print what ``analyze`` reports, and write it as a page and as JSON, in place of none of the files that are read.

    The exit status is 1 where a recording cannot be read, and with ``strict`` where anything is found.
    """
    paths = [folder / "report.html", folder / "report.json"]
    check_apart([("the report", path) for path in paths], read)
    make_folder(folder, _HINT)  # before an hour of measuring, not after it
    report = analyze()
    print(terminal(report))
    with writing(folder, _HINT):
        write_text(paths[0], page(report, draw(report)))
        write_json(paths[1], to_json(report))
    for path in paths:
        print(path)
    return int(any(strict or finding.kind in UNUSABLE for finding in report.findings))
