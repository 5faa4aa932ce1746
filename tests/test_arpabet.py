"""Words become phones of a dictionary as FastPitch 1.1 makes them, and which ones is drawn repeatably."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from golden_files import read_golden
from tiny_voice import save_voice

from common.checkpoints.reading import load_checkpoint
from common.errors import InputError
from common.text.arpabet import Pronouncer, dictionary_of_file, heteronyms_of_file, utterance_draws, with_given_files
from common.text.config import TextConfig
from common.text.front_end import TextFrontEnd
from common.text.options import TextOptions, TextOverrides, options_of_text, overridden, text_config
from fastpitch import published_checkpoints

FOLDER = "text/arpabet"
KINDS = {
    "p1_word_ignore": {},
    "p1_word_first": {"arpabet_ambiguous": "first"},
    "p1_sentence_ignore": {"arpabet_by": "sentence"},
    "p0": {"p_arpabet": 0.0},
    "p0.5_word_ignore_npseed": {"p_arpabet": 0.5},
}


@pytest.fixture(scope="module")
def expected(folder: Path) -> dict:
    return read_golden(folder / "expected.json")


@pytest.fixture(scope="module")
def tiny(folder: Path) -> TextConfig:
    return TextConfig(
        cleaners=("english_cleaners_v2",),
        p_arpabet=1.0,
        cmudict=dictionary_of_file(folder / "cmudict_tiny.txt"),
        heteronyms=heteronyms_of_file(folder / "heteronyms.txt"),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_sentences_are_encoded_as_published(expected: dict, tiny: TextConfig, kind: str) -> None:
    front_end = TextFrontEnd(replace(tiny, **KINDS[kind]), unknown_symbols="drop")
    seed = int(re.search(r"np\.random\.seed\((\d+)\)", expected["p0.5_note"])[1])
    compared = 0
    for sentence in expected["sentences"]:
        if not sentence["text"].strip():
            continue
        draw = np.random.RandomState(seed).uniform if "npseed" in kind else None
        assert front_end.clean(sentence["text"]) == sentence[kind]["text_clean"]
        assert front_end.encode(sentence["text"], draw=draw) == sentence[kind]["ids"], sentence["text"]
        compared += 1
    assert compared


def test_words_of_the_whole_dictionary() -> None:
    text = "two t.v.s and g.p.u.'s, the u.s. team: ten o'clock zzqj's {HH AH0 L OW1}, cup"
    assert Pronouncer(TextConfig(p_arpabet=1.0)).pronounce(text) == (
        "{T UW1} {T IY1}.{V IY1}.{Z} and {JH IY1}.{P IY1}.{Y UW1}.'{Z}, the {Y UW1}.{EH1 S}. {T IY1 M}: "
        "{T EH1 N} {AH0 K L AA1 K} zzqj's {HH AH0 L OW1}, {K AH1 P}"
    )


def _mixed(p: float = 0.5, **fields) -> TextFrontEnd:
    return TextFrontEnd(TextConfig(cleaners=("english_cleaners_v3",), p_arpabet=p, **fields))


TEXT = "Seven small ships came home with fish, bread, cheese and forty happy men from green islands."


def test_draws_depend_on_seed_epoch_and_utterance_alone() -> None:
    front_end = _mixed()
    cleaned = front_end.clean(TEXT)

    def ids(seed: int, epoch: int, index: int) -> tuple[int, ...]:
        return tuple(front_end.encode_cleaned(cleaned, draw=utterance_draws(seed=seed, epoch=epoch, index=index))[0])

    assert ids(1, 2, 3) == ids(1, 2, 3)
    assert len({ids(1, 2, 3), ids(2, 2, 3), ids(1, 3, 3), ids(1, 2, 4), ids(12, 3, 4)}) == 5


def test_a_file_that_a_checkpoint_names_is_never_opened_and_can_be_given_again(folder: Path, tmp_path: Path) -> None:
    named = tmp_path / "words\n.txt"
    named.write_text("cat  K AE1 T\n")
    for kind, given in (("cmudict", folder / "cmudict_tiny.txt"), ("heteronyms", folder / "heteronyms.txt")):
        text = TextConfig(speakers=("ann", "bob"), p_arpabet=1.0, **{f"{kind}_path": str(named)})
        older = load_checkpoint(save_voice(tmp_path / "v.pt", text=text)).text
        message = rf"names the file '.*words\\n\.txt' but does not hold it; give it again with --{kind}-path"
        with pytest.raises(InputError, match=message):
            TextFrontEnd(older).encode("A cat.")
        with pytest.raises(InputError, match=message):
            text_config(TextOptions(**options_of_text(older)), initial=older)
        ours = overridden(older, TextOverrides(**{f"{kind}_path": given}))
        TextFrontEnd(ours).encode("A cat.")
        assert with_given_files(older, ours) == ours and getattr(ours, f"{kind}_path") is None


def test_published_notes_of_the_text_are_read() -> None:
    setup = {"symbol_set": "english_basic", "text_cleaners": ["english_cleaners_v2"], "p_arpabet": 1.0}
    setup |= {"prepend_space_to_text": True, "cmudict_path": "cmudict/cmudict-0.7b"}
    wanted = TextConfig(cleaners=("english_cleaners_v2",), p_arpabet=1.0, prepend_space=True)
    assert published_checkpoints._text_config(setup, "char", n_symbols=148) == wanted
    assert published_checkpoints._text_config(setup, "char", n_symbols=150) is None
