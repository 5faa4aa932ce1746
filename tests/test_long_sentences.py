"""Long sentences: training joins clips, voices know their longest utterance and speak longer ones in parts."""

from dataclasses import replace
from pathlib import Path

import pytest
import tiny
import torch
from tiny_models import JOINED, TinyModel, without_samples
from tiny_voice import save_voice

from common.checkpoints import load_checkpoint, save_checkpoint
from common.config import AudioConfig
from common.data import GlobalBatchSampler, Longest, shapes_for
from common.distributed import Ranks
from common.nn.alignment import interpolated_prior
from common.synthesis import Voice, load_voice
from common.text import TextFrontEnd
from common.text.config import TextConfig
from fastpitch.data_function import FastPitchDataset
from fastpitch.training_list import read_list

JOIN = 1.5  # s; clips have 0.2 to 0.6
TEXT = (
    "When the boats had come back to the harbour, the old captain sat down on the wall beside the lighthouse "
    "and began to tell the children of the winter"
)


def dataset(folder: Path, *, learned: bool = False, join: float = JOIN) -> FastPitchDataset:
    rows = [line.split("|") for line in (folder / "train.txt").read_text().splitlines()]
    if learned:  # pitch of frames
        for mel, _, pitch, _ in rows:
            torch.save(torch.full((torch.load(folder / mel).size(1),), 150.0), folder / pitch)
        rows = [[mel, pitch, text] for mel, _, pitch, text in rows]
    speakers = ["ann"] * 7 + ["bob"] * (len(rows) - 7)
    (folder / "said.txt").write_text("".join("|".join([*row, name]) + "\n" for row, name in zip(rows, speakers)))
    entries = read_list(folder, folder / "said.txt", learned_alignment=learned)
    settings = {"audio": AudioConfig(), "text": TextConfig(speakers=("ann", "bob")), "seed": 5}
    return FastPitchDataset(folder, entries, n_speakers=2, join_clips=join, **settings)


def test_a_joined_utterance_is_its_clips_one_after_the_other(tmp_path: Path):
    data, space = dataset(tiny.make_corpus(tmp_path / "c")), TextFrontEnd(TextConfig()).symbols.index(" ")
    n_joined = 0
    for epoch, index in ((epoch, index) for epoch in range(8) for index in range(len(data))):
        batch = data.draw(index, epoch=epoch)
        assert batch.mels.size(2) == batch.mel_lengths == batch.durations.sum() == data.lengths_in(epoch)[index]
        clips, tokens = [data[index]], data[index].tokens
        while tokens.size(1) < batch.tokens.size(1):
            clips.append(data[index + len(clips)])
            tokens = torch.cat([tokens, torch.tensor([[space]]), clips[-1].tokens], 1)
        n_joined += len(clips) > 1
        assert torch.equal(batch.tokens, tokens) and batch.token_lengths == tokens.size(1)
        assert torch.equal(batch.mels, torch.cat([clip.mels for clip in clips], 2))
        for name in ("durations", "pitch"):  # nothing of the space
            values = [value for clip in clips for value in [0, *getattr(clip, name)[0].tolist()]]
            assert getattr(batch, name)[0].tolist() == values[1:]
        assert {int(clip.speakers) for clip in clips} == {int(batch.speakers)}
        assert len(clips) == 1 or batch.mels.size(2) <= JOIN * 22050 / 256
    assert 0.15 < n_joined / (8 * len(data)) < 0.35


def test_an_epoch_decides_what_is_joined_and_batches_know_the_lengths(tmp_path: Path):
    folder = tiny.make_corpus(tmp_path / "c")
    data, again, alone = dataset(folder), dataset(folder), dataset(folder, join=0)
    assert data.lengths_in(3) == again.lengths_in(3) != data.lengths_in(4)
    assert all(torch.equal(alone.draw(i, epoch=3).mels, alone[i].mels) for i in range(len(alone)))
    cut = {"batch_size": 5, "accumulation": 4, "seed": 1, "ranks": Ranks()}
    batches = GlobalBatchSampler(data.lengths, **cut, lengths_in=data.lengths_in)
    lengths = [data.lengths_in(1)[draw.index] for batch in batches for draw in batch]
    assert lengths == sorted(lengths) and max(lengths) > max(alone.sizes()["frames"])
    (*_, largest), _ = shapes_for([data], 3)
    assert largest["frames"] >= data.longest.frames >= max(max(data.lengths_in(epoch)) for epoch in range(20))
    assert alone.longest == Longest(*map(max, alone.sizes().values()))


def test_a_prior_is_that_of_the_joined_clips(tmp_path: Path):
    data = dataset(tiny.make_corpus(tmp_path / "c"), learned=True)
    data._pitch_mean, data._pitch_std = torch.tensor([100.0]), torch.tensor([50.0])
    batch = data.draw(max(range(len(data)), key=data.lengths_in(1).__getitem__), epoch=1)
    n_frames, n_tokens = int(batch.mel_lengths), int(batch.token_lengths)
    assert n_frames == batch.pitch_frames.size(1) > max(data.lengths)
    assert torch.equal(batch.prior[0], interpolated_prior(n_frames, n_tokens).float())


@pytest.mark.parametrize("model", JOINED, ids=lambda model: model.name)
def test_voices_keep_the_longest_utterance_of_all_their_trainings_and_split_longer_text(
    model: TinyModel, corpora: Path, tmp_path: Path
):
    first = model.checkpoint(tmp_path / "a", 1)

    def longest(name: str, *words: str, epoch: int = 1) -> Longest | None:
        with without_samples():
            assert model.train(corpora, tmp_path / name, *words, "--epochs", str(epoch)) == 0
        return load_checkpoint(model.checkpoint(tmp_path / name, epoch)).longest

    joined = longest("a")
    items = load_voice(first, device="cpu").plan(TEXT)
    assert len(items) > 1 and max(item.length for item in items) <= joined.symbols < len(TEXT)
    assert joined.frames > 100 and longest("b", "--join-clips", "0", "--from-checkpoint", str(first)) == joined
    save_checkpoint(first, replace(load_checkpoint(first), longest=None))
    assert longest("a", "--resume", epoch=2) is None


@pytest.fixture
def voice(tmp_path: Path) -> Voice:
    path = save_voice(tmp_path / "voice.pt")
    save_checkpoint(path, replace(load_checkpoint(path), longest=Longest(frames=500, symbols=70)))
    return load_voice(path, device="cpu")


def test_a_sentence_of_more_symbols_than_were_trained_on_is_spoken_in_parts(voice: Voice, capsys):
    speech = voice.speak(f"Go on. {TEXT}. Stop it.")
    note = "note: sentences of more than 70 symbols, the longest that this voice was trained on, are spoken in parts"
    voice.plan(f"{TEXT}.")
    assert capsys.readouterr().err == f"{note}; --no-split-sentences speaks them whole\n"
    assert [one.text for one in speech.utterances][1:-1] == [
        "When the boats had come back to the harbour,",
        "the old captain sat down on the wall beside the lighthouse",
        "and began to tell the children of the winter.",
    ]
    assert [part.item.pause for part in speech.parts] == [0.35, 0.15, 0.05, 0.35, 0.0]
    assert " ".join(word.text for word in speech.words) == f"Go on {TEXT.replace(',', '')} Stop it"
    times = [time for word in speech.words for time in (word.start, word.end)]
    assert times == sorted(times) and times[-1] <= speech.duration == voice.speak(speech.prosody).duration


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("When the boats were back, and all was quiet, the captain " + "sat " * 20, "When the boats were back,"),
        ("Back, then, were the boats; and the captain, " + "sat " * 20, "Back, then, were the boats;"),
        (
            "When the boats were safe in the harbour and the captain " + "sat " * 20,
            "When the boats were safe in the harbour",
        ),
        ("The captain, " + "sat " * 30, None),  # too short a clause
    ],
)
def test_a_sentence_in_parts_begins_with_a_short_clause_so_that_its_sound_begins_soon(voice: Voice, text, first):
    items = voice.plan(text)
    assert len(items) > 1 and " ".join(item.text for item in items) == text.strip()
    assert items[0].text == first or (first is None and len(items[0].text) > 25)


def test_the_first_sound_does_not_wait_for_the_matching_of_words_and_phones(voice: Voice, monkeypatch):
    monkeypatch.setattr("common.text.front_end.words_of_symbols", None)  # calling it fails
    assert sum(map(len, voice.stream(TEXT))) > 0


def test_what_says_more_than_text_and_voices_that_do_not_know_their_longest_stay_whole(voice: Voice):
    marked = TEXT.replace("captain", "<emphasis>captain</emphasis>")
    whole = replace(voice, longest=None)
    table = whole.speak(TEXT).prosody
    assert [len(one.plan(text)) for one, text in ((voice, marked), (voice, table), (whole, TEXT))] == [1, 1, 1]
    assert len(voice.plan(TEXT)) == 3 and len(voice.plan(TEXT, whole=True)) == 1
