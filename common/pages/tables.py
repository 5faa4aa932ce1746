"""Tables as HTML, which a click on a heading sorts, and the explanation of what stands in them; all text is escaped."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Term:
    """A figure's name, its unit, and what it means, which is shown on hover."""

    name: str
    meaning: str = ""
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.unit})" if self.unit else self.name


@dataclass(frozen=True)
class Number:
    """A number as it is shown and as it is sorted: None comes last. ``link`` is an anchor."""

    text: str
    value: float | None
    link: str = ""
    hint: str = ""  # shown on hover

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Link:
    """Text that leads to an anchor."""

    text: str
    anchor: str

    def __str__(self) -> str:
        return self.text


Cell = str | Term | Number | Link | tuple[Link, ...]


@dataclass(frozen=True)
class Row:
    """Cells, of which the first names the row, and the anchor that leads to it."""

    cells: Sequence[Cell]
    anchor: str = ""


def render_table(
    headings: Sequence[str | Term],
    rows: Sequence[Row],
    *,
    foot: Sequence[Row] = (),
    words: Sequence[int] = (),
    one_line: bool = False,
) -> str:
    """A table that sorts by any column, each row on ``one_line`` or broken at the page's width.

    Rows of ``foot`` stay below; columns ``words`` hold long text.
    """
    numeric = {column for row in rows for column, cell in enumerate(row.cells) if isinstance(cell, Number)}
    titles = []
    for column, heading in enumerate(headings):
        kind = "number" if column in numeric else "words" if column in words else ""
        kind = f' class="{kind}"' if kind else ""
        titles.append(f'<th scope="col" aria-sort="none"{kind}>{render_cell(heading)}</th>')
    body = "\n".join(map(_row, rows))
    end = f"\n<tfoot>{''.join(map(_row, foot))}</tfoot>" if foot else ""
    kind = "sortable lines" if one_line else "sortable"
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="table"><table class="{kind}">\n'
        f"<thead><tr>{''.join(titles)}</tr></thead>\n<tbody>\n{body}\n</tbody>{end}\n</table></div>"
    )


def _row(row: Row) -> str:
    cells = []
    for column, cell in enumerate(row.cells):
        number = ""
        if isinstance(cell, Number):
            number = f' class="number" data-value="{"" if cell.value is None else f"{cell.value:.10g}"}"'
        tag, scope = ("td", "") if column else ("th", ' scope="row"')
        cells.append(f"<{tag}{scope}{number}>{render_cell(cell)}</{tag}>")
    anchor = f' id="{row.anchor}"' if row.anchor else ""
    return f"<tr{anchor}>{''.join(cells)}</tr>"


def render_cell(cell: Cell) -> str:
    """The HTML of one cell's content."""
    if isinstance(cell, tuple):
        return ", ".join(map(render_cell, cell))
    if isinstance(cell, Term):
        name = f'<abbr title="{escape(cell.meaning)}">{escape(cell.name)}</abbr>' if cell.meaning else escape(cell.name)
        return f'{name} <span class="unit">({escape(cell.unit)})</span>' if cell.unit else name
    text = escape(str(cell))
    hint = f' title="{escape(cell.hint)}"' if isinstance(cell, Number) and cell.hint else ""
    anchor = cell.anchor if isinstance(cell, Link) else cell.link if isinstance(cell, Number) else ""
    return f'<a href="#{anchor}"{hint}>{text}</a>' if anchor else text


def glossary(terms: Sequence[Term]) -> str:
    """What each of ``terms`` means, for readers who cannot hover."""
    return (
        '<dl class="glossary">\n'
        + "\n".join(f"<dt>{escape(str(term))}</dt><dd>{escape(term.meaning)}</dd>" for term in terms)
        + "\n</dl>"
    )
