"""The studio: the server's page on which a sentence is typed, heard, seen and shaped, as one HTML file."""

import re
from functools import cache
from pathlib import Path

from markupsafe import Markup

from common.pages.render import NAME, PALETTE, STYLESHEET, digest, render_template

_FOLDER = Path(__file__).parent
# In the order of their use: all are one script.
_SCRIPTS = (
    *("table", "units", "sound", "server", "ssml", "dom", "mel", "utterance", "picture"),
    *("handles", "inspector", "takes", "studio", "session", "examples", "files"),
)


@cache
def page() -> str:
    """The HTML of the studio, with its style and script in it.

    It loads nothing else, and its policy forbids any script but ours and any request but to the server it came from.
    """
    script = "\n".join(_read(f"{name}.js") for name in _SCRIPTS)
    policy = "default-src 'none'; connect-src 'self'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'"
    policy += f"; form-action 'none'; script-src {digest(script)}"
    style = Markup(STYLESHEET + _chosen_colors() + _read("studio.css"))
    template = "serving/studio/studio.html"
    return render_template(template, policy=Markup(policy), product=NAME, style=style, script=Markup(script))


def _chosen_colors() -> str:
    """The palette's colors again, for those who choose light or dark on the page."""
    light, dark = re.findall(r":root \{(.*?)\}", PALETTE, re.DOTALL)
    rule = ':root[data-theme="{0}"] {{{1}  color-scheme: {0};\n}}\n'
    return rule.format("light", light) + rule.format("dark", dark)


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")
