"""The server's page, the studio."""

import re
from functools import cache
from pathlib import Path

from markupsafe import Markup

from common.pages.render import NAME, PALETTE, STYLESHEET, render_template

STUDIO = Path(__file__).parent / "studio"  # its scripts, served unchanged


@cache
def studio_page() -> str:
    """Return the studio's HTML. Its policy only allows scripts from its own server, and requests to it."""
    # Repeat the palette's colors, for users who choose light or dark on the page.
    light, dark = re.findall(r":root \{(.*?)\}", PALETTE, re.DOTALL)
    rule = ':root[data-theme="{0}"] {{{1}  color-scheme: {0};\n}}\n'
    style = STYLESHEET + rule.format("light", light) + rule.format("dark", dark)
    style += (STUDIO / "studio.css").read_text(encoding="utf-8")
    policy = "default-src 'none'; connect-src 'self'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'"
    policy += "; form-action 'none'; script-src 'self'"
    return render_template("serving/studio.html", policy=Markup(policy), product=NAME, style=Markup(style))
