"""Text becomes phones of its language, the same ones that the embedded speaker says."""

from unicodedata import normalize

import pytest

from common.errors import InputError
from common.text.config import TextConfig
from common.text.espeak import Speaker
from common.text.front_end import TextFrontEnd
from common.text.symbols import canonical_phone

GERMAN = "Der schöne Hund (groß) läuft: nein! Pferd, Zeit… „Ja“."


def front_end(language: str = "de", symbol_set: str = "ipa_marked", **options) -> TextFrontEnd:
    cleaners = options.pop("cleaners", ())
    config = TextConfig("phone", symbol_set, cleaners, g2p="espeak", g2p_language=language)
    return TextFrontEnd(config, **options)


def test_stress_length_and_punctuation_are_kept() -> None:
    wanted = (
        "sil d ɛ ɾ # ʃ ˈøː n ə # h ˈʊ n t sp ɡ ɾ ˈoː s sp l ˈɔø f t : n ˈaɪ n ! pf ˈeː ɾ t , ts ˈaɪ t … j ˈɑː . sil"
    )
    assert front_end().clean(GERMAN) == wanted
    assert front_end().decode(front_end().encode(GERMAN)).replace(" ", "") == wanted.replace(" ", "")


def test_the_set_of_code_points_keeps_espeaks_own_phones_with_a_boundary_after_each_mark() -> None:
    wanted = "d ɛ ɾ # ʃ ˈøː n ə # h ˈʊ n t # ɡ ɾ ˈoː s # l ˈɔø f t : # n ˈaɪ n ! # pf ˈeː ɾ t , # ts ˈaɪ t , # j ˈɑː ."
    assert front_end(symbol_set="espeak").clean(GERMAN) == f"sil {wanted} sil"
    english = front_end("en-us", "espeak")
    assert english.clean("The church's roses, water,") == "sil ð ə # tʃ ˈɜː tʃ ɪ z # ɹ ˈoʊ z ᵻ z , # w ˈɔː ɾ ɚ , # sil"
    assert english.decode(english.encode("Church {t͡ ʃ}!")) == "sil t ʃ ˈ ɜ ː t ʃ # t ͡ ʃ ! sil"


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en-us", 'Dr. Smith paid $3.50, and 1,000 "men" (all old) left; why? No... the end — of it!'),
        ("en-us", "He buttoned his cotton coat."),
        ("de", GERMAN),
        ("tr", "Merhaba dünya, çok güzel."),
    ],
)
def test_the_plain_set_holds_what_the_embedded_speaker_says(language: str, text: str) -> None:
    reader = front_end(language, "ipa")
    assert reader.decode(reader.encode(text)).split() == Speaker(voice=language).phones(text)
    marked = front_end(language, "espeak")
    if "(" not in text:  # beside which the speaker hears no mark
        assert marked.decode(marked.encode(text)).split() == Speaker(voice=language, marked=True).phones(text)


def test_punctuation_of_other_scripts_is_kept() -> None:
    cleaned = front_end("cmn").clean("你好，世界。")
    assert " , " in cleaned
    assert cleaned.endswith(" . sil")


def test_phones_in_curly_braces_stay() -> None:
    assert front_end().clean("Nein {m ˈ y l ɐ}! Gut {x}?") == "sil n ˈaɪ n # m ˈ y l ɐ ! ɡ ˈuː t # x ? sil"
    with pytest.raises(InputError, match=r"'Q' \(U\+0051\)"):
        front_end().encode("Nein {Q}.")


@pytest.mark.parametrize("text", ["", " ", "...", "?!", "{}"])
def test_silence_is_an_empty_transcript(text: str) -> None:
    with pytest.raises(InputError, match=r"empty transcript.*\(list\.txt:1\)"):
        front_end().encode(text, where="list.txt:1")


def test_english_is_written_out_first_but_for_phones_in_braces() -> None:
    reader = front_end("en-us", cleaners=("english_cleaners_v3",))
    assert reader.clean("At 5 pm {k ˈ æ t}.") == front_end("en-us").clean("at five p.m. {k ˈ æ t}.")


@pytest.mark.parametrize(
    ("language", "text", "wanted"),
    [
        ("de", "Grüße aus Köln", "ɡ ɾ ˈyː s ə # ˌaʊ s # k ˈœ l n"),
        ("fr-fr", "Les élèves ont été", "l e- z # e l ˈɛ v z # ˈɔ̃ t # e t ˈe"),
        ("ko", "모든 인간은", "m o d ˈɯ nˈi n q ɐ n ˌɯ n"),
        ("bn", "বাড়ি", "b ˈa r. i"),  # of which NFC makes two letters
        ("ru", "Мой ёжик, дверь", "m ˈo j # j ˈɵ ʒ y k , # d vʲ ˈe r ʲ"),
    ],
)
def test_letters_and_their_marks_are_read_as_one_however_they_are_encoded(
    language: str, text: str, wanted: str
) -> None:
    for form in ("NFC", "NFD"):
        cleaned = front_end(language, "espeak").clean(normalize(form, text))
        assert cleaned == canonical_phone(f"sil {wanted} sil")
