"""docs/PUBLISHED_FIGURES.md holds every table of figures of the documents that this project implements."""

import re
from collections import Counter
from itertools import pairwise, takewhile
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "PUBLISHED_FIGURES.md"
RULE = re.compile(r"\s*\|?(?:\s*:?-{3,}:?\s*\|)+(?:\s*:?-{3,}:?\s*)?")
NUMBER = r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?"  # but not the digits of FP16
N_TABLES = 33  # FastPitch 10, HiFi-GAN 10, Jasper 13; the others hold options, features and sounds

Row = tuple[str, ...]


def figures(line: str) -> Row:
    """What the cells of figures in a row say, exactly to the digit, without units and separators of thousands."""
    found: list[str] = []
    for cell in (cell.strip() for cell in line.strip().strip("|").split("|")):
        if cell in ("-", "N/A", "FP16", "FP32", "TF32"):
            found.append(cell)
        elif re.fullmatch(r"-?\d[^%]*", cell):  # "90%" heads a column
            found += [number.replace(",", "") for number in re.findall(NUMBER, cell)]
    return tuple(found)


def tables(text: str) -> list[tuple[Row, ...]]:
    """The rows of figures of each Markdown table that has any, its head included, as epochs stand there."""
    lines = text.splitlines()
    found = []
    starts = [index for index, line in enumerate(lines) if "|" in line and RULE.fullmatch(line)]
    for start, following in pairwise([*starts, len(lines) + 1]):  # a table may come right after another
        body = takewhile(lambda line: "|" in line, lines[start + 1 : following - 1])
        rows = [figures(line) for line in (lines[start - 1], *body)]
        rows = [row for row in rows if any(cell[0].isdigit() for cell in row)]
        if rows:
            found.append(tuple(rows))
    return found


def test_a_table_is_read_to_the_digit_whatever_its_style():
    published = "Batch | Precision | Loss | Time\n---|---|---|---|\n128@AMP, 64@FP32 | FP16 | 0.030 | 1516.4 h |\n"
    ours = "| batch | precision | loss | hours |\n| --- | --- | ---: | ---: |\n| 128 / 64 | FP16 | 0.030 | 1,516.4 |\n"
    assert tables(published) == tables(ours) == [(("128", "64", "FP16", "0.030", "1516.4"),)]
    assert tables(ours.replace("0.030", "0.03")) != tables(published)
    assert tables("| a | 90% |\n|---|---|\n| BS | 95% |\n") == []


def test_every_published_table_is_in_the_page_as_published(seeds: Path):
    published = [table for path in sorted(seeds.glob("*.txt")) for table in tables(path.read_text(encoding="utf-8"))]
    assert len(published) == N_TABLES
    missing = Counter(published) - Counter(tables(PAGE.read_text(encoding="utf-8")))
    assert list(missing) == []
