"""Runs an evaluation over a list: a table on the terminal, files, and results that are resumed after a stop."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common.evaluation.evaluator import Evaluator
from common.evaluation.items import EvaluationItem
from common.evaluation.packages import PACKAGES, installed
from common.evaluation.page import save_page
from common.evaluation.results import (
    JOURNAL,
    MEASURES,
    PAGE,
    RESULTS,
    Extent,
    Journal,
    Result,
    averages,
    files_of,
    save_results,
)
from common.files import check_apart, writing
from common.pages import Row, cells, text_line
from common.progress import print_line
from common.signals import StopSignals

_NAME_WIDTH = 24  # characters of an utterance's name in the table


def check_files(
    folder: Path, items: Sequence[EvaluationItem], *, dataset_path: Path, read: Sequence[tuple[str, Path]]
) -> None:
    """Refuse by OptionError an evaluation in ``folder`` that would write a file it reads: of the items, or ``read``.

    ``read`` is as `check_apart` takes it.
    """
    written = [("--output: the file", folder / name) for name in (JOURNAL, RESULTS, PAGE)]
    written += [(f"{one.where}: the file", path) for one in items for path in files_of(folder, one.name).values()]
    own = [(one.where, path) for one in items for path in one.phrase.files(dataset_path)]
    own += [(f"the recording of {one.where}", one.recording) for one in items if one.recording is not None]
    check_apart(written, [*read, *own])


class _Table:
    """The table on the terminal: a line for each utterance, and below it those of what it is shown beside."""

    def __init__(self, items: Sequence[EvaluationItem], evaluator: Evaluator) -> None:
        available = set(evaluator.measures) if any(item.recording is not None for item in items) else set()
        available |= {"words"} if evaluator.recognizer and any(item.words is not None for item in items) else set()
        available -= PACKAGES.keys() - installed()
        self._measures = [one for one in MEASURES.values() if not one.needs or one.needs in available]
        self._print("utterance", tuple(self._measures))

    def _print(self, name: str, row: Row, note: str | None = None) -> None:
        short = name if len(name) <= _NAME_WIDTH else f"...{name[3 - _NAME_WIDTH :]}"
        widths = [_NAME_WIDTH, *(max(6, len(str(measure))) for measure in self._measures)]
        print_line(text_line((short, *row), widths) + (f"  {note}" if note else ""))

    def show(self, result: Result) -> None:
        """Print an utterance's lines."""
        self._print(result.name.removesuffix(".wav"), cells(self._measures, result.figures), result.error)
        for one in result.beside:
            self._print(f"  {one.name}", cells(self._measures, one.figures))

    def show_averages(self, results: Sequence[Result], extent: Extent) -> None:
        """Print the lines below the table."""
        for name, means in averages(results).items():
            self._print(f"  {name}" if name else str(extent), cells(self._measures, means))


def run_evaluation(
    items: Sequence[EvaluationItem],
    evaluator: Evaluator,
    *,
    settings: dict[str, Any],
    facts: dict[str, str],
    fresh: bool,
) -> int:
    """Evaluate ``items``, resuming an earlier run of the same ``settings`` unless ``fresh``; the exit status.

    The table goes to stdout, the JSON and the page with ``facts`` into the evaluator's folder. After a signal the
    current utterance is finished, and what there is so far is reported.
    """
    folder = evaluator.folder
    journal = Journal(folder / JOURNAL, settings=settings)
    # Results of an earlier run without an error, of the same items, whose files are there.
    keys = {item.name: item.key for item in items}
    earlier = [] if fresh else [one for one in journal.read() if one.error is None and keys.get(one.name) == one.key]
    kept = {one.name: one for one in earlier if all(path.is_file() for path in one.files(folder).values())}
    journal.start(list(kept.values()))
    if kept:
        print(f"{len(kept)} of {len(items)} utterances are from an earlier run; --fresh measures them again")
    table = _Table(items, evaluator)
    for result in kept.values():
        table.show(result)
    results = []
    new = [item for item in items if item.name not in kept]
    with StopSignals() as signals:
        if new:
            evaluator.warm_up(new[0])
        for item in items:
            if item.name in kept:
                results.append(kept[item.name])
            elif signals.received is None:
                with writing(folder, "; what is finished is kept: make room, and start it again to resume"):
                    results.append(evaluator.evaluate(item))
                    journal.add(results[-1])
                table.show(results[-1])
    extent = Extent(len(results), len(items))
    table.show_averages(results, extent)
    save_results(folder / RESULTS, results, extent=extent, settings=facts | settings)
    title = " through ".join(Path(facts[role]).name for role in ("generator", "vocoder") if role in facts)
    save_page(folder, results, extent=extent, title=title, facts=facts | settings["options"])
    print_line(f"report: {folder / PAGE}; figures: {folder / RESULTS}")
    n_failed = sum(result.error is not None for result in results)
    if n_failed:
        print_line(f"{n_failed} of {len(results)} utterances could not be evaluated completely")
    if signals.received is not None and extent.stopped:
        print_line(f"stopped after {len(results)} of {len(items)} utterances; start it again to resume")
        return 128 + int(signals.received)
    return 1 if n_failed else 0
