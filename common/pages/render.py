"""Render pages from jinja2 templates: each is one HTML file with embedded stylesheet and script; text is escaped."""

import base64
import hashlib
import shlex
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from common.cli import toolkit_version

ROOT = Path(__file__).parents[2]
NAME = "speech-toolkit"
PALETTE, _STYLE, SCRIPT = (
    Path(__file__).with_name(name).read_text("utf-8") for name in ("palette.css", "style.css", "sort.js")
)
STYLESHEET = PALETTE + _STYLE  # of all pages; the palette defines light and dark colors as CSS variables
TEMPLATES = Environment(  # of all packages, by their paths below common/
    loader=FileSystemLoader(ROOT / "common"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    finalize=lambda value: "" if value is None else value,
)


def render_template(path: str | Template, **values: Any) -> str:
    """Render a template, whose ``path`` is relative to ``common/``; values are escaped unless they are ``Markup``."""
    return TEMPLATES.get_template(path).render(values)


def render_page(path: str | Template, **values: Any) -> str:
    """Render the HTML of a page whose template extends ``pages/page.html`` and shows ``values``.

    The page loads only sounds and pictures next to it, and its policy allows no script but ours.
    """
    module = getattr(sys.modules["__main__"], "__spec__", None)
    start = [sys.argv[0]] if module is None else ["-m", module.name.removesuffix(".__main__")]
    return render_template(
        path,
        script_digest=digest(SCRIPT),
        style=Markup(STYLESHEET),
        script=Markup(SCRIPT),
        made=f"{datetime.now().astimezone():%Y-%m-%d %H:%M %Z} · {NAME} {toolkit_version()}",
        command=shlex.join(["python", *start, *sys.argv[1:]]),  # to paste in the toolkit's folder
        **values,
    )


def digest(script: str) -> str:
    """Return the source expression that allows a script in a page's Content-Security-Policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode('ascii')}'"
