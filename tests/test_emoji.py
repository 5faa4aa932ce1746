"""Emoji are left out and counted, refused in training, or named where somebody asks for it."""

import json
from pathlib import Path

import pytest
from shell import ROOT

import inference
from common.errors import InputError
from common.synthesis import loading
from common.text.config import TextConfig
from common.text.front_end import TextFrontEnd
from common.text.ssml import Span

LETTERS = TextConfig(cleaners=("english_cleaners_v3",))


def config_of(language: str) -> TextConfig:
    cleaners = ("english_cleaners_v3",) if language == "en-us" else ()
    return TextConfig("phone", "ipa_marked", cleaners, g2p="espeak", g2p_language=language)


def read(config: TextConfig, text: str, *, read_emoji: bool = False) -> tuple[str, int]:
    """What is spoken of a text, and how many characters were left out."""
    front_end = TextFrontEnd(config, unknown_symbols="drop", read_emoji=read_emoji)
    encoded = front_end.encode_words([Span(text)])
    ids, dropped = list(encoded.ids), encoded.dropped
    return front_end.decode(ids), dropped.total()


@pytest.mark.parametrize("language", ["en-us", "de", "fr-fr", "cmn"])
def test_emoji_are_left_out_and_counted_in_every_language(language: str) -> None:
    config = config_of(language)
    assert read(config, "da 😀 da👍🏽❤.") == (read(config, "da da.")[0], 4)
    with pytest.raises(InputError, match=r"'😀' .* cannot be read by .* --unknown-symbols drop"):
        TextFrontEnd(config).encode("da 😀")


NAMES = {
    "en-us": "Hi grinning face.",
    "de": "Hi grinsendes Gesicht.",
    "fr-fr": "Hi visage rieur.",
    "es": "Hi cara sonriendo.",
    "cs": "Hi šklebící se obličej.",
    "nl": "Hi grijnzend gezicht.",
    "pt-br": "Hi rosto risonho.",
    "tr": "Hi sırıtan yüz.",
}


@pytest.mark.parametrize("language", NAMES)
def test_emoji_are_named_where_somebody_asks_for_it(language: str) -> None:
    spoken, n_dropped = read(config_of(language), "Hi 😀.", read_emoji=True)
    assert spoken.replace(" ", "") == read(config_of(language), NAMES[language])[0].replace(" ", "")
    assert n_dropped == 0


def test_emoji_without_a_name_are_left_out_and_other_text_stays() -> None:
    assert read(config_of("cmn"), "你好😀", read_emoji=True) == (read(config_of("cmn"), "你好")[0], 1)
    assert read(LETTERS, "Hi 😀👍🏽, it's 20° 🇩🇪!", read_emoji=True) == (
        "hi grinning face thumbs up sign, it's twenty degrees flag!",
        0,
    )


def test_a_command_speaks_a_text_with_emoji_and_names_them_with_an_option(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(loading, "VOICES", ROOT / "voices")
    symbols = {}
    for options in ((), ("--read-emoji",)):
        words = [
            "--text",
            "Hello 😀 there.",
            "-o",
            str(tmp_path / "a.wav"),
            "--save-prosody",
            "--griffin-lim-iters",
            "1",
        ]
        assert inference.main([*words, *options]) == 0
        prosody = json.loads((tmp_path / "a.prosody.json").read_text(encoding="utf-8"))
        symbols[options] = sum(len(word["symbols"]) for one in prosody["utterances"] for word in one["words"])
        (tmp_path / "a.wav").unlink()
        warned = "1 character that this voice has no symbol for was left out: '😀' (1)" in capsys.readouterr().err
        assert warned == (options == ())
    assert symbols["--read-emoji",] > symbols[()] + 8
