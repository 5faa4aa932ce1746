"""An evaluation as one HTML page: averages, a table, and for each utterance players, transcripts and a plot."""

import base64
import difflib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import soundfile

from common.errors import InputError
from common.evaluation.options import GRIFFIN_LIM
from common.evaluation.results import (
    PAGE,
    RECORDING,
    SYNTHESIZED,
    Result,
    average_rows,
    averages,
    known_measures,
    result_rows,
    worst_of,
)
from common.files import write_text
from common.pages import render_page, setting_rows
from common.pages.charts import data_url

EMBEDDED_BYTES = 48 * 2**20  # larger pages refer to the files in their folder instead of holding them


def save_page(folder: Path, results: Sequence[Result], *, n_listed: int, title: str, facts: Mapping[str, Any]) -> None:
    """Write the page, with sounds and plots in it, or links to their files where it would be too large.

    Raises:
        InputError: it cannot be written, or a file for it cannot be read.
    """
    files = {
        result.name: {kind: path for kind, path in result.files(folder).items() if path.is_file()} for result in results
    }
    # Base64 makes them 4 / 3 as large; FLAC is smaller than the files that are counted here.
    linked = 4 / 3 * sum(path.stat().st_size for paths in files.values() for path in paths.values()) > EMBEDDED_BYTES
    measures = known_measures(results)
    html = render_page(
        "evaluation/page.html",
        linked=linked,
        title=title,
        n_listed=n_listed,
        results=results,
        measures=measures,
        means=averages(results)[""],
        worst={measure.key: worst_of(measure, results) for measure in measures},
        anchors={result.name: f"u{number}" for number, result in enumerate(results)},
        rows=result_rows(results),
        foot=average_rows(results, n_listed=n_listed),
        media={
            name: {kind: quote(path.relative_to(folder).as_posix()) if linked else _embed(path) for kind, path in paths}
            for name, paths in ((name, paths.items()) for name, paths in files.items())
        },
        players=(RECORDING, GRIFFIN_LIM, SYNTHESIZED),
        compared=compared,
        settings=setting_rows(facts),
    )
    write_text(folder / PAGE, html)


def _embed(path: Path) -> str:
    """A data URL of a sound or picture."""
    if path.suffix == ".svg":
        return data_url(path.read_text(encoding="utf-8"))
    try:
        samples, rate = soundfile.read(path, dtype="int16")
    except soundfile.LibsndfileError as error:
        raise InputError(f"{path}: cannot be read; run the evaluation with --fresh") from error
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format="FLAC", subtype="PCM_16")
    return f"data:audio/flac;base64,{base64.b64encode(file.getvalue()).decode('ascii')}"


def compared(text: str | None, reference: str | None) -> list[tuple[str, bool]] | None:
    """A transcript in pieces, and whether each differs from the reference, if there is one; None without a text."""
    if text is None or reference is None:
        return None if text is None else [(text, False)] * bool(text)
    words = text.split()
    matcher = difflib.SequenceMatcher(None, reference.split(), words, autojunk=False)
    pieces = [(" ".join(words[start:end]), kind != "equal") for kind, _, _, start, end in matcher.get_opcodes()]
    return [piece for piece in pieces if piece[0]]
