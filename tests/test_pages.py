"""Pages load nothing from elsewhere, and hostile words stay words."""

import re

from page_reader import PageReader

from common.pages import render as pages
from common.pages.render import STYLESHEET, digest, render_page
from common.pages.tables import Link, Measure, Number, Row

HOSTILE = "</style></script><script>alert(\"1\")</script><img src=x onerror='a()'>&amp; {{$x}} {% raw %}"
TEMPLATE = """{% extends "pages/page.html" %}
{% from "pages/tables.html" import glossary, table %}
{% set sections = {"first": title} %}
{% set kind = title %}
{% block first %}{{ table(headings, rows) }}{{ glossary(terms) }}{% endblock %}"""


def page(*, text: str = "Title", headings: tuple = (), rows: tuple[Row, ...] = (), terms: tuple = ()) -> PageReader:
    values = {"title": text, "headline": text, "headings": headings, "rows": rows, "terms": terms}
    template = pages.TEMPLATES.from_string(TEMPLATE)
    return PageReader(render_page(template, **values))


def test_only_our_own_script_may_run_and_nothing_is_loaded_from_elsewhere():
    reader = page()
    (script,) = reader.scripts
    assert reader.styles == ["\n" + STYLESHEET]
    assert f"script-src {digest(script)}" in reader.policy and "default-src 'none'" in reader.policy
    assert "img-src data: 'self' file:;" in reader.policy
    assert not re.search(r"https?:|url\(|@import|fetch|XMLHttp", STYLESHEET + script)


def test_hostile_text_stays_text_wherever_it_stands():
    terms = (Measure(HOSTILE, HOSTILE, HOSTILE, meaning=HOSTILE),)
    number = Number(HOSTILE, "first", value=1.0)
    row = (HOSTILE, number, Link(HOSTILE, "first"), Measure("", HOSTILE, meaning=HOSTILE))
    reader = page(headings=(HOSTILE, *terms, "", ""), rows=(row,), terms=terms, text=HOSTILE)
    assert "img" not in reader.tags and len(reader.scripts) == 1
    assert reader.tables[0].rows[0][0][0] == HOSTILE == reader.links[0][0]
    assert set(reader.tables[0].hints) == {HOSTILE} and reader.glossary == {f"{HOSTILE} ({HOSTILE})": HOSTILE}
