"""HTML pages that look like one product: a shell with one stylesheet, tables that sort, and charts."""

from common.pages.shell import NAME, Section, palette, render_page, stylesheet
from common.pages.tables import Cell, Link, Number, Row, Term, glossary, render_cell, render_table
