"""HTML pages that look like one product: templates with one stylesheet, tables that sort, and charts."""

from common.pages.render import NAME, Cell, Link, Number, Row, Term, palette, render_page, render_template, stylesheet
