"""Emoji in a text: which characters they are, and their names, where somebody asks for them to be said."""

import re
import unicodedata

from common.text.cleaners import ENGLISH_V3
from common.text.config import TextConfig
from common.text.g2p import sounds_of_text
from common.text.symbols import SILENCES, get_symbol_table

# Pictures and flags, of which eSpeak NG says the names in some sixty languages unless they are taken out.
EMOJI = re.compile("[\u231a-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]")
_JOINED = r"[\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*"  # skin tones, and letters of regions
_SEQUENCE = re.compile(
    rf"[\U0001f1e6-\U0001f1ff]{{2}}|{EMOJI.pattern}{_JOINED}(?:\u200d{EMOJI.pattern}{_JOINED})*", re.ASCII
)


def name_emoji(text: str, config: TextConfig) -> str:
    """The text with the names of its emoji, if the language has them: phones in curly braces, or words."""

    def named(match: re.Match) -> str:
        return f" {name} " if (name := _name_of(match[0], config)) else match[0]

    return _SEQUENCE.sub(named, text)


def _name_of(emoji: str, config: TextConfig) -> str:
    """The name of an emoji, "" if there is none."""
    if config.g2p is not None:
        sounds = sounds_of_text(emoji, language=config.g2p_language, table=get_symbol_table(config.symbol_set))
        phones = " ".join(sound.symbol for sound in sounds if sound.symbol not in SILENCES[:1])
        return f"{{{phones}}}" if phones else ""
    if ENGLISH_V3 not in config.cleaners:
        return ""
    names = [unicodedata.name(one, "").lower() for one in EMOJI.findall(emoji)]
    if names[0].startswith("regional indicator"):
        return "flag"
    return " ".join(name for name in names if not name.startswith("emoji modifier"))
