"""Reads an HTML page for tests: its text, what it refers to, its anchors, and its tables."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = ("meta", "img")  # tags without an end


@dataclass
class PageTable:
    """One table; a cell is its text and the number that it sorts by (None: sorted as text)."""

    headings: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)  # of headings and cells, shown on hover
    rows: list[list[tuple[str, str | None]]] = field(default_factory=list)


class PageReader(HTMLParser):
    """Checks that tags close in order, that anchors exist once, and that nothing is loaded from elsewhere."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.sources: dict[str, list[str]] = {"audio": [], "img": []}
        self.links: list[tuple[str, str]] = []  # text and anchor
        self.ids: list[str] = []
        self.tables: list[PageTable] = []
        self.styles: list[str] = []
        self.scripts: list[str] = []
        self.in_glossary = False
        self.terms: list[str] = []  # names and meanings in turn
        self.policy = self.text = ""
        self.tags: set[str] = set()
        self.feed(content)
        assert self.open == []
        assert len(self.ids) == len(set(self.ids))
        assert {anchor for _, anchor in self.links} <= set(self.ids)
        self.glossary = dict(zip(self.terms[::2], self.terms[1::2]))  # name and unit -> meaning

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        values = dict(attrs)
        assert not any(name.startswith("on") for name in values)  # no code in attributes
        if "id" in values:
            self.ids.append(values["id"])
        if tag in self.sources:
            self.sources[tag].append(values["src"])
        elif "src" in values or tag in ("link", "iframe", "object", "base", "form"):
            raise AssertionError(f"{tag} {values}")
        if tag == "meta" and values.get("http-equiv") == "Content-Security-Policy":
            self.policy = values["content"]
        if tag == "a":
            assert values["href"].startswith("#")
            self.links.append(("", values["href"][1:]))
        if tag == "table":
            self.tables.append(PageTable())
        if tag == "tr" and "thead" not in self.open:
            self.tables[-1].rows.append([])
        if tag in ("th", "td"):
            if "thead" in self.open:
                self.tables[-1].headings.append("")
            else:
                self.tables[-1].rows[-1].append(("", values.get("data-value")))
        if tag == "abbr" and "table" in self.open:
            self.tables[-1].hints.append(values["title"])
        if tag == "dl":
            self.in_glossary = values.get("class") == "glossary"
        if tag in ("dt", "dd") and self.in_glossary:
            self.terms.append("")
        {"style": self.styles, "script": self.scripts}.get(tag, []).append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("style", "script"):
            (self.styles if self.open[-1] == "style" else self.scripts)[-1] += data
            return
        self.text += data
        if "a" in self.open:
            text, anchor = self.links[-1]
            self.links[-1] = (text + data, anchor)
        if {"dt", "dd"} & set(self.open) and self.in_glossary:
            self.terms[-1] += data
        if "thead" in self.open and "th" in self.open:
            self.tables[-1].headings[-1] += data
        elif {"td", "th"} & set(self.open):
            text, value = self.tables[-1].rows[-1][-1]
            self.tables[-1].rows[-1][-1] = (text + data, value)
