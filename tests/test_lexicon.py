"""A user lexicon says words by its phones in every kind of voice, and what is wrong in it is named by file and line."""

import pickle
from pathlib import Path

import pytest

from common.errors import InputError
from common.text.arpabet import dictionary_of_file, heteronyms_of_file, load_dictionary
from common.text.config import TextConfig
from common.text.espeak import unlinked
from common.text.front_end import TextFrontEnd
from common.text.lexicon import read_lexicon
from common.text.phone_alphabets import alphabet_of, phones_for_voice
from common.text.phone_features import read_phone_features
from common.text.ssml import Span

V3 = "english_cleaners_v3"
LETTERS = TextConfig(cleaners=(V3,))
PUBLISHED = TextConfig(cleaners=("english_cleaners",))
IPA = TextConfig("phone", "ipa_marked", (V3,), g2p="espeak")
PLAIN_IPA = TextConfig("phone", "ipa", (V3,), g2p="espeak")
CODE_POINTS = TextConfig("phone", "espeak", (V3,), g2p="espeak")
GERMAN = TextConfig("phone", "ipa_marked", (), g2p="espeak", g2p_language="de")
WORDS = (
    "# our words\n\n"
    "NVIDIA\tEH0 N V IH1 D IY0 AH0\n"
    "nvidia\tEH0 N V IH1 D IY0 AH0\n"
    "US\tY UW1 EH1 S\tarpabet\n"
    "Tomato\ttəˈmɑːtoʊ # British\n"
    "GPU\tJH IY1 P IY1 Y UW1\n"
    "church\tˈtʃɜːtʃ\tipa\n"
    "cat\tK AA1 T\n"
    "R&D\tAA1 R AH0 N D IY1\n"
    "approx.\tAH0 P R AA1 K S\n"
)


@pytest.fixture
def words(tmp_path: Path) -> Path:
    path = tmp_path / "words.tsv"
    path.write_text(WORDS, encoding="utf-8")
    return path


def read(path: Path, config: TextConfig, text: str) -> str:
    front_end = TextFrontEnd(config, lexicon=read_lexicon(path, config))
    ids = front_end.encode(text)
    assert list(front_end.encode_words([Span(text)]).ids) == ids
    symbols = front_end.decode(ids)
    return symbols.replace(" ", "") if config.g2p else symbols


@pytest.mark.parametrize("config", [LETTERS, PUBLISHED, TextConfig(cleaners=(V3,), p_arpabet=1.0, append_space=True)])
def test_words_become_arpabet_for_a_voice_of_letters(words: Path, config: TextConfig) -> None:
    symbols = read(words, config, "Buy (NVIDIA), TOMATO! A church.")
    assert all(said in symbols for said in ("{EH0 N V IH1 D IY0 AH0}", "{T AH0 M AA1 T OW0}", "{CH ER1 CH}"))


@pytest.mark.parametrize(("config", "tomato"), [(IPA, "təmˈɑːtoʊ"), (PLAIN_IPA, "təmɑtoʊ"), (GERMAN, "təmˈɑːtoʊ")])
def test_words_become_ipa_for_a_voice_of_phones(words: Path, config: TextConfig, tomato: str) -> None:
    symbols = read(words, config, "Tomato, tomato NVIDIA!")
    assert symbols.count(tomato) == 2
    assert ("ɛnvɪdiəsil" if config is PLAIN_IPA else "ɛnvˈɪdiə!sil") in symbols


def test_case_matters_for_words_with_capitals_inside_and_possessives_get_their_ending(words: Path) -> None:
    assert read(words, LETTERS, "US told us about Us.") == "{Y UW1 EH1 S} told us about us."
    assert read(words, LETTERS, "Nvidia's Cat cats") == "{EH0 N V IH1 D IY0 AH0 Z} {K AA1 T} cats"
    assert read(words, LETTERS, "cat’s church's") == "{K AA1 T S} {CH ER1 CH IH0 Z}"
    assert read(words, LETTERS, "GPUs, gpus") == "{JH IY1 P IY1 Y UW1 Z}, gpus"
    assert "t͡ʃˈɜːt͡ʃɪz" in read(words, IPA, "The church's.")


def test_a_front_end_takes_its_lexicon_to_other_processes(words: Path) -> None:
    front_end = TextFrontEnd(LETTERS, lexicon=read_lexicon(words, LETTERS))
    assert pickle.loads(pickle.dumps(front_end)).encode("a tomato") == front_end.encode("a tomato")
    assert TextFrontEnd(LETTERS).encode("a tomato") != front_end.encode("a tomato")


READERS = {
    "lexicon": lambda path: read_lexicon(path, LETTERS),
    "features": read_phone_features,
    "dictionary": dictionary_of_file,
    "heteronyms": heteronyms_of_file,
}
FOLDER = Path(__file__).parent / "text_cases"
BAD_FILES = (FOLDER / "bad_files.tsv").read_text(encoding="utf-8").splitlines()[1:]


@pytest.mark.parametrize("line", BAD_FILES)
def test_what_is_wrong_in_a_file_is_named_by_its_line(tmp_path: Path, line: str) -> None:
    kind, content, message = line.split(" | ")
    (tmp_path / "words.tsv").write_text(content.replace("\\n", "\n").replace("\\t", "\t"), encoding="utf-8")
    with pytest.raises(InputError) as error:
        READERS[kind](tmp_path / "words.tsv")
    assert f"{tmp_path / 'words.tsv'}{message}" in str(error.value) and "\n" not in str(error.value)


def test_a_voice_that_takes_no_phones_for_words_says_so(words: Path) -> None:
    with pytest.raises(InputError, match=r"words\.tsv: the voice reads phones alone.*--g2p espeak"):
        read_lexicon(words, TextConfig("phone", "ipa_marked", ()))
    with pytest.raises(InputError, match="the voice reads phones of xsampa"):
        phones_for_voice("K AE1 T", alphabet="arpabet", config=TextConfig("phone", "xsampa", ()))


@pytest.mark.parametrize("line", (FOLDER / "phones.tsv").read_text(encoding="utf-8").splitlines()[1:])
def test_phones_of_both_alphabets_are_converted_with_stress(line: str) -> None:
    phones, arpabet, ipa = line.split("\t")
    alphabet = alphabet_of(phones)
    assert phones_for_voice(phones, alphabet=alphabet, config=LETTERS) == arpabet.split()
    assert "".join(phones_for_voice(phones, alphabet=alphabet, config=IPA)) == ipa
    own = "".join(phones_for_voice(phones, alphabet=alphabet, config=CODE_POINTS))
    assert unlinked(own) == ipa and "\u0361" not in own
    if "\u0329" not in ipa:
        plain = ipa.translate(str.maketrans("", "", "ˈˌː"))
        assert "".join(phones_for_voice(phones, alphabet=alphabet, config=PLAIN_IPA)) == plain


def test_arpabet_survives_the_way_to_ipa_and_back() -> None:
    spoken = [ways[0] for word, ways in sorted(load_dictionary().items()) if len(word) == 6][::20]
    back = [phones_for_voice(phones, alphabet="arpabet", config=IPA) for phones in spoken]
    back = [" ".join(phones_for_voice("".join(ipa), alphabet="ipa", config=LETTERS)) for ipa in back]
    assert len(spoken) > 500
    assert sum(map(str.__ne__, back, spoken)) / len(spoken) < 0.02  # "AH0 R" is "ER0"
