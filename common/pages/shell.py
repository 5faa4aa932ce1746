"""The frame of every page: title, what made it, sections, one stylesheet and one script, in a single file."""

import base64
import hashlib
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from html import escape
from pathlib import Path
from string import Template

from common.cli import toolkit_version

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
NAME = "speech-toolkit"


@dataclass(frozen=True)
class Section:
    """A part of a page that its list of contents names."""

    anchor: str
    title: str
    html: str


def render_page(*, kind: str, title: str, headline: str, sections: Sequence[Section], linked: bool = False) -> str:
    """The HTML of a page; ``kind``, ``title`` and ``headline`` are text.

    It loads nothing from elsewhere, and its policy forbids any script but ours. A ``linked`` page refers to sounds and
    pictures in files beside it, others hold them.
    """
    # A page that is opened from the disk has no origin: its neighbors are of "file:", not of 'self'.
    media = "data: 'self' file:" if linked else "data:"
    digest = base64.b64encode(hashlib.sha256(script().encode()).digest()).decode("ascii")
    policy = f"default-src 'none'; img-src {media}; media-src {media}; style-src 'unsafe-inline'"
    policy += f"; script-src 'sha256-{digest}'"
    now = f"{datetime.now().astimezone():%Y-%m-%d %H:%M %Z}"
    version = commit()
    return Template(_read("shell.html")).substitute(
        policy=policy,
        kind=escape(kind),
        title=escape(title),
        style=stylesheet(),
        headline=escape(headline),
        made=escape(f"{now} · {NAME} {toolkit_version()}" + (f", commit {version}" if version else "")),
        command=escape(command_line()),
        nav=" ".join(f'<a href="#{one.anchor}">{escape(one.title)}</a>' for one in sections),
        sections="\n".join(
            f'<section id="{one.anchor}">\n<h2>{escape(one.title)}</h2>\n{one.html}\n</section>' for one in sections
        ),
        script=script(),
    )


def stylesheet() -> str:
    """The CSS of all pages."""
    return palette() + _read("style.css")


def palette() -> str:
    """The colors as CSS variables, light and dark, which charts use as well."""
    return _read("palette.css")


def script() -> str:
    """The JavaScript that sorts tables; without it they are plain tables."""
    return _read("sort.js")


def command_line() -> str:
    """The command of this process, as it is pasted from the toolkit's folder."""
    module = getattr(sys.modules["__main__"], "__spec__", None)
    start = [sys.argv[0]] if module is None else ["-m", module.name.removesuffix(".__main__")]
    return shlex.join(["python", *start, *sys.argv[1:]])


@cache
def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


@cache
def commit() -> str | None:
    """Of the toolkit's own repository; None in a copy without one."""
    if not (ROOT / ".git").exists():
        return None
    try:
        command = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
