"""The embedded speaker says the same text alike every time, and tells truly where its phones are."""

import multiprocessing
import sys
from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest

from common.errors import InputError
from common.text import espeak
from common.text.config import TextConfig
from common.text.espeak import EspeakSpeech, Speaker, symbols_of, transcribe
from common.text.front_end import TextFrontEnd
from common.text.ssml import Span

TEXT = "She told the curious children about a measured voyage, and then they jumped; was it the end?"


@pytest.fixture(scope="module")
def speech() -> EspeakSpeech:
    return Speaker().speak(TEXT)


def test_phones_are_those_of_the_text_and_tile_the_wave(speech):
    wanted = (
        "sil ʃ i t o ʊ l d ð ə k j ʊ ɹ ɹ i ə s t͡ʃ ɪ l d ɹ ə n ɐ b a ʊ t ɐ m ɛ ʒ ə ɹ d v ɔ ɪ ɪ d͡ʒ sp æ n d ð ɛ n ð e ɪ "
        "d͡ʒ ʌ m p t sp w ʌ z ɪ t ð ɪ ɛ n d sil"
    )
    assert " ".join(phone.label for phone in speech.phones) == wanted
    assert speech.sampling_rate == 22050
    assert (speech.phones[0].start_s, speech.phones[-1].end_s) == (0, speech.duration_s)
    assert all(one.start_s < one.end_s for one in speech.phones)
    assert all(before.end_s == after.start_s for before, after in zip(speech.phones, speech.phones[1:]))


def test_words_are_those_of_the_text_in_order(speech):
    assert " ".join(word.label for word in speech.words) == TEXT.translate(str.maketrans("", "", ",;?"))
    assert all(before.end_s <= after.start_s for before, after in zip(speech.words, speech.words[1:]))
    assert {word.start_s for word in speech.words} <= {phone.start_s for phone in speech.phones}


def test_the_same_text_gives_the_same_samples_whatever_was_said_before():
    texts = [TEXT, "Eight geese.", "The moon threw a cool blue light across the pool."]
    first = [Speaker().speak(text) for text in texts]
    Speaker(voice="en-gb", words_per_minute=200, pitch=70).speak("Something else entirely.")
    for text, before in zip(reversed(texts), reversed(first)):
        again = Speaker().speak(text)
        assert np.array_equal(again.samples, before.samples) and again.phones == before.phones


@pytest.mark.parametrize(
    ("name", "symbols"),
    [
        ("ˈɑːɹ", (("ɑ", 2), ("ɹ", 1))),
        ("tʃ", (("t͡ʃ", 1),)),
        ("ɚ", (("ə", 1), ("ɹ", 1))),
        ("n̩", (("n", 1),)),
        ("ᵻ", (("ɨ", 1),)),
    ],
)
def test_names_of_phones_come_apart_into_symbols(name, symbols):
    assert symbols_of(name) == symbols


def test_a_text_with_nothing_to_say_and_an_unknown_voice_are_refused():
    with pytest.raises(InputError, match="nothing to say"):
        Speaker().speak("...")
    with pytest.raises(InputError, match=r"no voice 'en-xx'.*en-us"):
        Speaker(voice="en-xx").speak("Hello.")


def test_a_missing_package_is_one_line_that_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "espeakng_loader", None)
    monkeypatch.setattr(espeak, "library", lambda task: espeak.Library())
    with pytest.raises(InputError, match="pip install espeakng-loader"):
        Speaker().speak("Hello.")


@pytest.fixture
def crashing(tmp_path, monkeypatch) -> Iterator[None]:
    """A library whose process ends without an answer at any text with an x in it."""
    real = espeak._PROGRAM
    program = tmp_path / "crashing.py"
    program.write_text(
        f"import runpy, sys\nreal = runpy.run_path({str(real)!r})\nread = real['_Espeak'].read\n"
        "real['_Espeak'].read = lambda self, text: sys.exit(1) if 'x' in text else read(self, text)\n"
        "real['main'](*sys.argv[1:])\n"
    )
    monkeypatch.setattr(espeak, "_PROGRAM", program)
    espeak._load.cache_clear()
    yield
    espeak._load.cache_clear()


def test_a_text_at_which_the_library_crashes_is_one_line_and_the_next_one_is_read(crashing):
    front_end = TextFrontEnd(TextConfig("phone", "ipa", (), g2p="espeak", g2p_language="en-us"))
    wanted = front_end.encode("Go on.", where="list.txt:1")
    for encode in (front_end.encode, lambda text, where: front_end.encode_words([Span(text)], where=where)):
        with pytest.raises(InputError, match=r"^'Fix it\.': eSpeak NG crashes "):
            encode("Fix it.", where="list.txt:2")
        assert front_end.encode("Go on.") == wanted


def test_a_forked_process_has_a_library_of_its_own():
    mine = transcribe("Go on.", language="en-us")
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.starmap(partial(transcribe, language="en-us"), [("Go on.",)] * 8) == [mine] * 8
    assert transcribe("Go on.", language="en-us") == mine
