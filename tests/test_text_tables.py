"""The tables in text_cases: how texts are read, said, cut into sentences, divided into words, and refused."""

import random
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from front_ends import FRONT_ENDS, spoken

from common.errors import InputError
from common.text import sentences
from common.text.arpabet import dictionary_of_file, heteronyms_of_file
from common.text.front_end import TextFrontEnd
from common.text.heteronyms import read_heteronyms
from common.text.languages import guess_language
from common.text.lexicon import read_lexicon
from common.text.markdown import read_text
from common.text.normalization.english.english import read_english
from common.text.normalization.multilingual import LANGUAGES, number_reader
from common.text.phone_alphabets import alphabet_of, phones_for_voice
from common.text.phone_features import read_phone_features
from common.text.prosody import NEUTRAL
from common.text.sentences import split_utterances
from common.text.ssml import Boundary, Item, Span, read_markup

FOLDER = Path(__file__).parent / "text_cases"


def check_english(phrase: str, reading: str) -> None:
    assert read_english(phrase) == reading


def check_numbers(sentence: str, reading: str, *, language: str) -> None:
    read = number_reader(language)
    assert read is not None
    assert read(sentence) == reading
    assert read(reading) == reading, "words stay"


def check_heteronyms(sentence: str, words: str) -> None:
    text = read_english(sentence)
    found = [f"{text[one.start : one.end]} {one.arpabet}" for one in read_heteronyms(text)]
    assert ", ".join(found) == words


def check_pasted_text(text: str, reading: str, phones: str = "") -> None:
    front_end = TextFrontEnd(FRONT_ENDS["code points"])
    said = [one for one in split_utterances(read_text(text.replace("\\n", "\n"))) if one.spans]
    encoded = [front_end.encode_words(one.spans) for one in said]
    assert " | ".join(one.reading for one in encoded) == reading
    symbols = [front_end.decode(list(one.ids)).removeprefix("sil ").removesuffix(" sil") for one in encoded]
    if phones:
        assert " | ".join(one.replace(" ", "").replace("#", " ").strip() for one in symbols) == phones


def check_phones(phones: str, ipa: str) -> None:
    convert = partial(phones_for_voice, phones, alphabet=alphabet_of(phones))
    assert "".join(convert(config=FRONT_ENDS["english"])) == ipa
    if "\u0329" not in ipa:
        plain = ipa.translate(str.maketrans("", "", "ˈˌː"))
        assert "".join(convert(config=FRONT_ENDS["plain"])) == plain
    assert "\u0361" not in "".join(convert(config=FRONT_ENDS["code points"]))


def check_words(kind: str, text: str, *expected: str) -> None:
    front_end = TextFrontEnd(FRONT_ENDS[kind])
    encoded = front_end.encode_words([Span(text)])
    for word, wanted in zip(encoded.words, expected):
        symbols = front_end.decode(list(encoded.ids[word.start : word.end]))
        assert f"{word.text}={symbols.replace(' ', '') if front_end.config.g2p else symbols}" == wanted


def check_sentences(marked: str) -> None:
    marked = marked.replace("\\n", "\n")
    found = ["".join(span.text for span in one.spans) for one in split_utterances([Span(marked.replace("|", ""))])]
    assert found == [part.strip() for part in marked.split("|")]


def check_pauses(text: str, pauses: str) -> None:
    expected = [getattr(sentences, pause) if pause.isalpha() else float(pause) for pause in pauses.split()]
    found = [one.pause for one in split_utterances(read_markup(text.replace("\\n", "\n")))]
    assert found == pytest.approx(expected)


def written(item: Item) -> str:
    """An item of markup as the table has it."""
    if isinstance(item, Boundary):
        return f"<{item.kind}>"
    if not isinstance(item, Span):
        return f"<{item.seconds:g}s>"
    values = {name: value for name, value in vars(item.style).items() if value != getattr(NEUTRAL, name)}
    values |= {name: value for name in ("source", "alphabet") if (value := getattr(item, name)) is not None}
    changed = [f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in values.items()]
    return item.text + (f" [{', '.join(changed)}]" if changed else "")


def check_markup(text: str, items: str = "") -> None:
    assert "|".join(map(written, read_markup(text.replace("\\n", "\n")))) == items


def check_wrong_markup(text: str, line: str, column: str, message: str) -> None:
    for where, start in (("list.txt:7", "list.txt:7: "), ("", "")):
        with pytest.raises(InputError) as error:
            read_markup(text.replace("\\n", "\n"), where=where)
        assert str(error.value).startswith(f"{start}line {line}, column {column}: ") and message in str(error.value)


def check_language(language: str, *texts: str) -> None:
    assert guess_language(texts) == language


READERS: dict[str, Callable[[Path], object]] = {
    "lexicon": lambda path: read_lexicon(path, FRONT_ENDS["v3"]),
    "features": read_phone_features,
    "dictionary": dictionary_of_file,
    "heteronyms": heteronyms_of_file,
}


def check_bad_file(kind: str, content: str, message: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "words.tsv"
        path.write_text(content.replace("\\n", "\n").replace("\\t", "\t"), encoding="utf-8")
        with pytest.raises(InputError) as error:
            READERS[kind](path)
    assert f"{path}{message}" in str(error.value) and "\n" not in str(error.value)


def check_refusal(kind: str, text: str, *parts: str) -> None:
    config = FRONT_ENDS.get(kind) or spoken(kind, "espeak")
    with pytest.raises(InputError) as error:
        TextFrontEnd(config).encode(text, where="list.txt:3")
    assert all(part in str(error.value) for part in ("(list.txt:3)", *parts)), error.value
    assert "\n" not in str(error.value)


TABLES: dict[str, Callable[..., None]] = {
    "english_v3.tsv": check_english,
    "heteronyms.tsv": check_heteronyms,
    "plain_texts.tsv": check_pasted_text,
    "phones.tsv": check_phones,
    "words.tsv": check_words,
    "sentences.txt": check_sentences,
    "pauses.tsv": check_pauses,
    "ssml.tsv": check_markup,
    "ssml_errors.tsv": check_wrong_markup,
    "bad_files.tsv": check_bad_file,
    "refused.tsv": check_refusal,
    "languages.tsv": check_language,
    **{f"numbers_{language}.tsv": partial(check_numbers, language=language) for language in LANGUAGES},
}


def rows(name: str) -> list[list[str]]:
    lines = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if not line.startswith("# ")]


CASES = [pytest.param(check, row, id=f"{name}: {row[0]}") for name, check in TABLES.items() for row in rows(name)]


@pytest.mark.parametrize(("check", "row"), CASES)
def test_a_row_of_a_table(check: Callable[..., None], row: list[str]) -> None:
    check(*row)


_ARPABET = re.compile(r"\{[A-Z0-9 ]+\}")
_LEGAL = frozenset("abcdefghijklmnopqrstuvwxyz-!'(),.:;? ")
PHRASES = [phrase for phrase, _ in rows("english_v3.tsv")]


def random_texts(seed: int, count: int) -> list[str]:
    """Words of the table in any order, strings of the signs that rules look at, and any Unicode."""
    generator = random.Random(seed)
    words = [word for phrase in PHRASES for word in phrase.split()]
    signs = "0123456789.,$£€% xmbstndrIVXAB:-'\"/ap#&@+=<>()°~^*_{}St.Dr No"
    texts = []
    for _ in range(count // 3):
        texts.append(" ".join(generator.choices(words, k=generator.randrange(1, 9))))
        texts.append("".join(generator.choices(signs, k=generator.randrange(1, 40))))
        points = [generator.randrange(0xD800) for _ in range(generator.randrange(1, 12))]
        texts.append("".join(map(chr, points)) + "".join(generator.choices(signs, k=8)) + "\U0001f600\ud800")
    return texts


def test_any_text_gives_only_lower_case_letters_and_marks_which_are_read_as_themselves() -> None:
    for text in PHRASES + random_texts(1, 2000):
        once = read_english(text)
        assert set(_ARPABET.sub("", once)) <= _LEGAL, text
        assert read_english(once) == once, text


def test_curly_brace_arpabet_stays_verbatim_and_other_braces_go() -> None:
    assert read_english("{HH AH0 L OW1}, Dr. {R IY1 D}!") == "{HH AH0 L OW1}, doctor {R IY1 D}!"
    assert read_english("{hello} {HH QQ} {}") == "hello h.h. q.q."


def test_real_transcripts_keep_their_words(shared_data: Path) -> None:
    """Ours are those of LJSpeech's normalized transcripts, which keep some abbreviations (i.e., e.g., etc., MSS.)."""
    lines = (shared_data / "LJSpeech-sample" / "metadata.csv").read_text(encoding="utf-8").splitlines()
    differing = 0
    for line in lines:
        _, raw, normalized = line.split("|")
        words = [re.sub(r"[^a-z' ]", " ", text.lower()).split() for text in (read_english(raw), normalized)]
        if words[0] != words[1]:
            assert re.search(r"\b(?:i\.e|e\.g|etc|MSS)\.", normalized), line
            differing += 1
    assert len(lines) == 80 and differing <= 4
