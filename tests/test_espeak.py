"""The embedded speaker says the same text alike every time, and tells truly where its phones are."""

import csv
import multiprocessing
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import soundfile
import tgt

from common.config import AudioConfig
from common.errors import InputError, line_and_status
from common.extraction.textgrid import fit, read_alignment
from common.text import espeak
from common.text.config import TextConfig
from common.text.espeak import EspeakSpeech, Speaker, symbols_of, transcribe
from common.text.front_end import TextFrontEnd
from common.text.ssml import Span
from scripts.demos.quickstart import make_corpus, normalize

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
    with pytest.raises(ModuleNotFoundError) as caught:
        Speaker().speak("Hello.")
    line, status = line_and_status(caught.value)
    assert "the package espeakng_loader" in line and "pip install" in line and status == 1


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


TEXTS = ["A narrow path climbs.", "Stop at 7!", "The end is near, said the clerk; nobody listened to him."]


@pytest.fixture(scope="module", params=[Speaker(), Speaker(marked=True)], ids=["plain", "marked"])
def speaker(request) -> Speaker:
    return request.param


@pytest.fixture(scope="module")
def corpus(tmp_path_factory, speaker) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    make_corpus(folder, TEXTS, speaker)
    return folder


def test_the_metadata_has_each_text(corpus):
    with (corpus / "metadata.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="|", quoting=csv.QUOTE_NONE))
    assert normalize(TEXTS[1]) == "stop at seven!"
    assert rows == [[f"EM-{i:04d}", text, normalize(text)] for i, text in enumerate(TEXTS, start=1)]


def test_textgrids_hold_the_phones_of_the_text_to_the_end_of_the_wav_and_fit_its_mel(corpus, speaker):
    config = AudioConfig()
    for i, text in enumerate(map(normalize, TEXTS), start=1):
        grid = tgt.read_textgrid(str(corpus / "TextGrid" / f"EM-{i:04d}.TextGrid"), encoding="utf-8")
        phones = grid.get_tier_by_name("phones")
        assert [interval.text for interval in phones] == speaker.phones(text)
        info = soundfile.info(corpus / "wavs" / f"EM-{i:04d}.wav")
        assert (info.samplerate, info.channels, info.subtype) == (22050, 1, "PCM_16")
        assert float(phones[-1].end_time) == pytest.approx(info.duration, abs=1e-6)
        path, n_frames = corpus / "TextGrid" / f"EM-{i:04d}.TextGrid", 1 + info.frames // config.hop_length
        alignment = fit(read_alignment(path, config), n_frames, path=path, config=config)
        assert list(alignment.phones) == speaker.phones(text)
        for mark, letter in zip(phones, list(phones)[1:]) if speaker.marked else ():
            assert mark.text not in "ˈˌ" or 2 * mark.duration() < letter.duration() + 1e-6
        assert min(alignment.durations) >= (not speaker.marked) and sum(alignment.durations) == n_frames
        words = " ".join(interval.text for interval in grid.get_tier_by_name("words"))
        assert words == text.translate(str.maketrans("", "", ".,;!"))
