"""Pages from jinja2 templates: each is one HTML file with its stylesheet and script in it; all text is escaped."""

import base64
import hashlib
import shlex
import subprocess
import sys
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from common.cli import toolkit_version

ROOT = Path(__file__).parents[2]
NAME = "speech-toolkit"
TEMPLATES = Environment(  # of all rooms, by their paths below common/
    loader=FileSystemLoader(ROOT / "common"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    finalize=lambda value: "" if value is None else value,
)


def render_template(path: str | Template, **values: Any) -> str:
    """The text of a template, whose ``path`` is from ``common/``; values are escaped unless they are ``Markup``."""
    return TEMPLATES.get_template(path).render(values)


def render_page(path: str | Template, **values: Any) -> str:
    """The HTML of a page whose template extends ``pages/page.html`` and shows ``values``.

    It loads nothing but sounds and pictures beside it, and its policy forbids any script but ours.
    """
    script = _read("sort.js")
    module = getattr(sys.modules["__main__"], "__spec__", None)
    start = [sys.argv[0]] if module is None else ["-m", module.name.removesuffix(".__main__")]
    return render_template(
        path,
        script_digest=digest(script),
        style=Markup(stylesheet()),
        script=Markup(script),
        made=f"{datetime.now().astimezone():%Y-%m-%d %H:%M %Z} · {NAME} {toolkit_version()}",
        commit=commit(),
        command=shlex.join(["python", *start, *sys.argv[1:]]),  # as it is pasted from the toolkit's folder
        **values,
    )


def digest(script: str) -> str:
    """What a page's policy calls a script that may run."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode('ascii')}'"


def stylesheet() -> str:
    """The CSS of all pages."""
    return palette() + _read("style.css")


def palette() -> str:
    """The colors as CSS variables, light and dark."""
    return _read("palette.css")


@cache
def _read(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


@cache
def commit() -> str | None:
    """The commit of the toolkit's own repository; None in a copy without one."""
    if not (ROOT / ".git").exists():
        return None
    try:
        command = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
