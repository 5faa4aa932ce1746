"""Text front ends for tests, by name, and what they read of a text."""

from common.text.config import TextConfig
from common.text.front_end import TextFrontEnd
from common.text.ssml import Span

V3 = ("english_cleaners_v3",)


def spoken(language: str, symbol_set: str = "ipa_marked") -> TextConfig:
    """A voice that reads a language as eSpeak NG's phones."""
    cleaners = V3 if language.startswith("en") else ()
    return TextConfig("phone", symbol_set, cleaners, g2p="espeak", g2p_language=language)


FRONT_ENDS = {
    "v3": TextConfig(cleaners=V3),
    "v1": TextConfig(cleaners=("english_cleaners",)),
    "v2": TextConfig(cleaners=("english_cleaners_v2",)),
    "v2_1_1": TextConfig(symbol_set="english_expanded", cleaners=("english_cleaners_v2_1_1",), append_space=True),
    "tacotron2": TextConfig(cleaners=("english_cleaners_tacotron2",)),
    "basic": TextConfig(symbol_set="english_expanded", cleaners=("basic_cleaners",)),
    "raw": TextConfig(symbol_set="english_expanded", cleaners=(), prepend_space=True),
    "arpabet": TextConfig(cleaners=V3, p_arpabet=1.0),
    "mixed": TextConfig(cleaners=V3, p_arpabet=0.5, prepend_space=True),
    "english": spoken("en-us"),
    "code points": spoken("en-us", "espeak"),
    "plain": spoken("en-us", "ipa"),
    "german": spoken("de"),
    "french": spoken("fr-fr", "espeak"),
    "phones": TextConfig("phone", "ipa_marked", ()),
}


def say(front_end: TextFrontEnd, text: str) -> str:
    """The symbols of a text, without spaces between phones."""
    said = front_end.decode(list(front_end.encode_words([Span(text)]).ids))
    return said.replace(" ", "").replace("#", " ").removeprefix("sil")[:-3] if front_end.config.g2p else said
