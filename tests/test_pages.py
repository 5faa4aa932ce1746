"""Pages share one shell, stylesheet and script, load nothing, and show words as words and numbers as numbers."""

import base64
import hashlib
import io
import re
import sys

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from page_reader import PageReader
from PIL import Image

from common.pages import Link, Number, Row, Section, Term, glossary, render_page, render_table
from common.pages.charts import COLORS, chart_style, data_url, to_svg
from common.pages.shell import palette, script, stylesheet

HOSTILE = "</style></script><script>alert(\"1\")</script><img src=x onerror='a()'>&amp; {{$x}}"


def page(html: str = "<p>Text.</p>", *, text: str = "Title", linked: bool = False) -> PageReader:
    sections = [Section("first", text, html)]
    return PageReader(render_page(kind=text, title=text, headline=text, sections=sections, linked=linked))


def test_a_page_says_what_made_it_and_when(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "argv", ["extract_mels.py", "--report", "-d", "my <corpus>"])
    reader = page()
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d \S+ · speech-toolkit \d+\.\d+\.\d+", reader.text)
    assert "--report -d 'my <corpus>'" in reader.text
    assert reader.links == [("Title", "first")]


def test_only_our_own_script_may_run_and_nothing_is_loaded_from_elsewhere():
    reader = page()
    assert reader.scripts == [script()] and reader.styles == ["\n" + stylesheet()]
    digest = base64.b64encode(hashlib.sha256(script().encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in reader.policy and "default-src 'none'" in reader.policy
    assert "file:" not in reader.policy and "img-src data: 'self' file:;" in page(linked=True).policy
    assert not re.search(r"https?:|url\(|@import|fetch|XMLHttp", stylesheet() + script())


def test_hostile_text_stays_text_wherever_it_stands():
    terms = [Term(HOSTILE, HOSTILE, HOSTILE)]
    row = Row(
        (HOSTILE, Number(HOSTILE, 1.0, link="first", hint=HOSTILE), Link(HOSTILE, "first"), Term(HOSTILE, HOSTILE))
    )
    reader = page(render_table([HOSTILE, *terms, "", ""], [row], foot=[row]) + glossary(terms), text=HOSTILE)
    assert "img" not in reader.tags and len(reader.scripts) == 1
    assert reader.tables[0].rows[0][0][0] == HOSTILE == reader.links[0][0]
    assert set(reader.tables[0].hints) == {HOSTILE} and reader.glossary == {f"{HOSTILE} ({HOSTILE})": HOSTILE}


def test_numbers_sort_as_numbers_and_what_is_missing_comes_last():
    rows = [Row(("a", Number("1 h", 3600.0))), Row(("b", Number("2 min", 120.0))), Row(("c", Number("-", None)))]
    (table,) = page(render_table(["name", Term("length", "how long", "h")], rows, foot=rows[:1])).tables
    assert table.sortable and table.sort == ["none", "none"] and table.headings == ["name", "length (h)"]
    assert [row[1][1] for row in table.rows] == ["3600", "120", "", "3600"]
    assert [row[0] for row in table.rows] == [("a", None), ("b", None), ("c", None), ("a", None)]


def test_every_color_exists_in_light_and_in_dark():
    light, dark = palette().split("@media")
    names = re.findall(r"--(\w+):", light)
    assert names == re.findall(r"--(\w+):", dark) and len(names) == len(set(names))
    assert set(re.findall(r"var\(--(\w+)\)", stylesheet())) <= set(names)
    assert not re.search(r"#[0-9a-f]{3,6}\b", stylesheet().replace(palette(), ""))


def drawn(values: np.ndarray) -> str:
    with chart_style():
        figure = Figure(figsize=(4, 3))
        axis = figure.subplots()
        axis.imshow(values, interpolation="none", cmap="magma")
        axis.set_title("$<b>$", color=COLORS["red"])
        return to_svg(figure)


def test_a_chart_has_text_in_the_page_font_and_colors_of_the_page():
    svg = drawn(np.arange(6.0).reshape(2, 3))
    assert "#c0de" not in svg and "var(--ink)" in svg and "fill: var(--red)" in svg and palette() in svg
    assert ">$&lt;b&gt;$</text>" in svg and "DejaVu" not in svg and "system-ui" in svg
    assert "http" not in re.sub(r'xmlns[:\w]*="[^"]*"', "", svg)
    assert not re.search(r"[\"'<>#\s]", data_url(svg))
    assert drawn(np.arange(6.0).reshape(2, 3)) == svg


def test_a_spectrogram_loses_no_color_and_needs_a_byte_a_pixel():
    values = np.random.default_rng(0).random((40, 50))
    (content,) = re.findall(r"data:image/png;base64,([^\"]+)", drawn(values))
    image = Image.open(io.BytesIO(base64.b64decode(content)))
    colors = matplotlib.colormaps["magma"](matplotlib.colors.Normalize()(values), bytes=True)
    assert image.mode == "P"
    found = np.asarray(image.convert("RGBA"))
    assert np.array_equal(found, colors) or np.array_equal(found[::-1], colors)
