"""Long sentences: voices know the longest utterance of their training and speak longer ones in parts."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_models import MODELS, TinyModel, without_samples
from tiny_voice import save_voice

from common.checkpoints.checkpoint import save_checkpoint
from common.checkpoints.reading import load_checkpoint
from common.data.batch import Longest
from common.synthesis.loading import load_voice
from common.synthesis.voice import Voice

TEXT = (
    "When the boats had come back to the harbour, the old captain sat down on the wall beside the lighthouse "
    "and began to tell the children of the winter"
)


@pytest.mark.parametrize("model", [one for one in MODELS if one.corpus == "features"], ids=lambda model: model.name)
def test_voices_keep_the_longest_utterance_of_all_their_trainings_and_split_longer_text(
    model: TinyModel, corpora: Path, tmp_path: Path
):
    first = model.checkpoint(tmp_path / "a", 1)

    def longest(name: str, *words: str, epoch: int = 1) -> Longest | None:
        with without_samples():
            assert model.train(corpora, tmp_path / name, *words, "--epochs", str(epoch)) == 0
        return load_checkpoint(model.checkpoint(tmp_path / name, epoch)).longest

    trained = longest("a")
    items = load_voice(first, device="cpu").plan(TEXT)
    assert len(items) > 1 and trained.symbols < len(TEXT)
    before = Longest(trained.frames + 100, trained.symbols + 10)
    save_checkpoint(first, replace(load_checkpoint(first), longest=before))
    assert longest("b", "--from-checkpoint", str(first)) == before
    save_checkpoint(first, replace(load_checkpoint(first), longest=None))
    assert longest("a", "--resume", epoch=2) is None


@pytest.fixture
def voice(tmp_path: Path) -> Voice:
    path = save_voice(tmp_path / "voice.pt")
    save_checkpoint(path, replace(load_checkpoint(path), longest=Longest(frames=500, symbols=70)))
    return load_voice(path, device="cpu")


def test_a_sentence_of_more_symbols_than_were_trained_on_is_spoken_in_parts(voice: Voice):
    speech = voice.speak(f"Go on. {TEXT}. Stop it.")
    assert [one.text for one in speech.utterances][1:-1] == [
        "When the boats had come back to the harbour,",
        "the old captain sat down on the wall beside the lighthouse",
        "and began to tell the children of the winter.",
    ]
    assert [part.item.pause for part in speech.parts] == [0.35, 0.15, 0.05, 0.35, 0.0]
    assert " ".join(word.text for word in speech.words) == f"Go on {TEXT.replace(',', '')} Stop it"
    times = [time for word in speech.words for time in (word.start, word.end)]
    assert times == sorted(times) and times[-1] <= speech.duration == voice.speak(speech.prosody).duration


def test_what_says_more_than_text_and_voices_that_do_not_know_their_longest_stay_whole(voice: Voice):
    marked = TEXT.replace("captain", "<emphasis>captain</emphasis>")
    whole = replace(voice, longest=None)
    table = whole.speak(TEXT).prosody
    assert [len(one.plan(text)) for one, text in ((voice, marked), (voice, table), (whole, TEXT))] == [1, 1, 1]
    assert len(voice.plan(TEXT)) == 3 and len(voice.plan(TEXT, longest=sys.maxsize)) == 1
