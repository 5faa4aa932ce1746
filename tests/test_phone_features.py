"""Phones as phonological features: the table's file, and voices that are trained on them, resumed, and spoken with."""

import csv
from pathlib import Path

import pytest
import torch
from golden_files import listed, read_golden
from tiny import make_corpus, train_options
from tiny_models import assert_same_state, without_samples

import inference
import train
from common.checkpoints.reading import load_checkpoint
from common.config import to_plain
from common.errors import CheckpointError, InputError
from common.text.config import TextConfig
from common.text.front_end import TextFrontEnd
from common.text.phone_features import read_phone_features
from common.text.symbols import SILENCES

NAMES = ("syl", "son", "cont", "voi", "lab", "hi")
LETTERS = "abcdefghijklmnopqrstuvwxyz"
PF = ("--input-type", "pf", "--symbol-set", "ipa")


def write_table(path: Path) -> Path:
    """Features of the letters, of which no two have the same."""
    rows = [("symbol", *NAMES)]
    rows += [(letter, *("+-"[index >> bit & 1] for bit in range(len(NAMES)))) for index, letter in enumerate(LETTERS)]
    path.write_text("".join(",".join(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny corpus, its letters as phones and all else as pauses."""
    folder = make_corpus(tmp_path_factory.mktemp("pf") / "corpus", count=12)
    for name in ("train.txt", "val.txt"):
        lines = [line.rpartition("|") for line in (folder / name).read_text().splitlines()]
        texts = [" ".join(one if one in LETTERS else "sp" for one in text) for *_, text in lines]
        (folder / name).write_text("".join(f"{columns}|{text}\n" for (columns, *_), text in zip(lines, texts)))
    write_table(folder / "features.csv")
    return folder


def train_on(corpus: Path, output: Path, *options: str) -> Path:
    table = ["--phone-features", str(corpus / "features.csv")]
    with without_samples():
        assert train.main(train_options(corpus, output, *PF, *table, "--ema-decay", "0.9", *options)) == 0
    return output / "FastPitch_checkpoint_2.pt"


@pytest.fixture(scope="module")
def voice(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_on(corpus, tmp_path_factory.mktemp("voice"), "--epochs", "2")


def speak(voice: Path, folder: Path, *options: str, text: str = "sil b r e d sp sil") -> torch.Tensor:
    """The mel of a transcript."""
    (folder / "phrases.txt").write_text(f"a.wav|{text}\n")
    words = ["--fastpitch", str(voice), "-i", str(folder / "phrases.txt"), "-o", str(folder / "out"), "--no-audio"]
    assert inference.main([*words, "--save-mels", *options]) == 0
    return torch.load(folder / "out/mels/a.pt", weights_only=True)


def phones_of(case: dict) -> list[str]:
    """The phones of a published transcript, which may be written together."""
    words = case["text"].split()
    letters = [one for word in words for one in ([word] if word in SILENCES else word)]
    return words if len(words) == len(case["pf"]) else letters


@pytest.mark.parametrize("symbol_set", sorted({case["symbol_set"] for case in listed("text/phones_1_0.json", "cases")}))
def test_phones_become_the_published_vectors(goldens: Path, tmp_path: Path, symbol_set: str):
    names = read_golden(goldens / "text/symbols_1_0.json", "sets", "pf", "symbols")
    cases = read_golden(goldens / "text/phones_1_0.json", "cases")
    cases = [one for one in cases if one["symbol_set"] == symbol_set and len(phones_of(one)) == len(one["pf"])]
    assert cases
    rows = {phone: one for case in cases for phone, one in zip(phones_of(case), case["pf"]) if not one[-1]}
    table = [[phone, *(("0", "+", "-")[value] for value in one[:-1])] for phone, one in rows.items()]
    with (tmp_path / "table.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["ipa", *names[:-1]], *table])
    lines = read_phone_features(tmp_path / "table.csv")
    front_end = TextFrontEnd(TextConfig(input_type="pf", symbol_set="", cleaners=(), phone_features=lines))
    assert front_end.n_symbols == len(names)
    for case in cases:
        assert front_end.inputs(front_end.encode(case["text"])).tolist() == case["pf"]


def test_a_voice_is_trained_resumed_and_stored_with_its_table(corpus: Path, voice: Path, tmp_path: Path):
    checkpoint = load_checkpoint(voice)
    assert checkpoint.text.phone_features == read_phone_features(corpus / "features.csv")
    assert (checkpoint.config.symbol_type, checkpoint.config.n_symbols) == ("pf", 7)
    assert checkpoint.networks["fastpitch"]["encoder.word_emb.weight"].shape == (16, 7)
    train_on(corpus, tmp_path, "--epochs", "1")
    assert_same_state(train_on(corpus, tmp_path, "--epochs", "2", "--resume"), voice)
    other = tmp_path / "features.csv"
    other.write_text((corpus / "features.csv").read_text().replace("\na,+", "\na,-"))
    with pytest.raises(CheckpointError, match="phone_features"):
        train_on(corpus, tmp_path, "--epochs", "3", "--resume", "--phone-features", str(other))


def test_a_published_voice_is_given_its_table(corpus: Path, voice: Path, tmp_path: Path):
    """Published checkpoints hold no table."""
    checkpoint, bare = load_checkpoint(voice), tmp_path / "bare.pt"
    state = {"state_dict": checkpoint.networks["fastpitch"], "ema_state_dict": checkpoint.ema["fastpitch"]}
    torch.save({"config": to_plain(checkpoint.config), **state}, bare)
    with pytest.raises(InputError, match="but their table is missing; give --phone-features FILE"):
        speak(bare, tmp_path)
    table = ["--phone-features", str(corpus / "features.csv")]
    assert torch.equal(speak(bare, tmp_path, *table), speak(voice, tmp_path))
    (tmp_path / "other.csv").write_text("symbol,syl\na,+\n")
    with pytest.raises(InputError, match="the model reads 7 features, their table has 2"):
        speak(bare, tmp_path, "--phone-features", str(tmp_path / "other.csv"))
    trained = load_checkpoint(train_on(corpus, tmp_path / "on", "--checkpoint-path", str(bare), "--epochs", "2"))
    assert trained.text == checkpoint.text
