"""Voices from recordings and transcripts alone: several speakers, fine-tuning by name, exact resume, energy."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from golden_files import matching
from tiny import TINY_OPTIONS, read_aloud

import inference
import train
from common.checkpoints.checkpoint import Checkpoint, save_checkpoint
from common.checkpoints.reading import load_checkpoint
from common.config import AudioConfig
from common.data.filelist import FilelistEntry
from common.errors import InputError
from common.text.config import TextConfig
from common.text.espeak import Speaker
from common.text.front_end import TextFrontEnd
from common.torch_file import load_tensor
from fastpitch.config import ModelConfig
from fastpitch.data_function import speaker_names
from fastpitch.fine_tuning import start_from, voice_of
from fastpitch.model import build_networks

pytestmark = pytest.mark.usefixtures("no_samples")

SENTENCES = ["Bread and salt.", "Seven ships came.", "He read it twice.", "She counts the steps.", "The rain stopped."]
PITCHES = {"low": 20, "high": 90}
SYMBOLS = "encoder.word_emb.weight"
ENERGY = ("--energy-conditioning", "--energy-predictor-filter-size", "16")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two speakers who read the same sentences, one low and one high."""
    folder = tmp_path_factory.mktemp("two") / "corpus"
    speakers = {name: Speaker(words_per_minute=200, pitch=pitch) for name, pitch in PITCHES.items()}
    read_aloud(folder, SENTENCES, speakers)
    return folder


def run_train(corpus: Path, output: Path, *extra: str, lists: tuple[str, str] = ("train.txt", "val.txt")) -> int:
    files = ["--training-files", str(corpus / lists[0]), "--validation-files", str(corpus / lists[1])]
    shape = () if "--from-checkpoint" in extra else TINY_OPTIONS
    words = ["-o", str(output), "-d", str(corpus), *files, *shape, "-bs", "4", "--warmup-steps", "10"]
    return train.main([*words, "--learned-alignment", "--validation-interval", "100", *extra])


@pytest.fixture(scope="module")
def voice(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of both speakers, after two epochs."""
    output = tmp_path_factory.mktemp("voice")
    assert run_train(corpus, output, "--epochs", "2", *ENERGY) == 0
    return output / "FastPitch_checkpoint_2.pt"


def test_adversarial_training_begins_with_a_plain_voice_and_resumes_exactly(corpus: Path, voice: Path, tmp_path: Path):
    given = ["--from-checkpoint", str(voice), "--adversarial"]
    assert run_train(corpus, tmp_path / "whole", *given, "--epochs", "2") == 0
    assert run_train(corpus, tmp_path / "parts", *given, "--epochs", "2", "--epochs-this-job", "1") == 0
    assert run_train(corpus, tmp_path / "parts", *given, "--epochs", "2", "--resume") == 0
    whole, parts = (load_checkpoint(tmp_path / one / "FastPitch_checkpoint_2.pt") for one in ("whole", "parts"))
    assert set(whole.networks) == {"fastpitch", "mel_discriminator"}
    for name, weights in whole.networks.items():
        for key, value in weights.items():
            assert torch.equal(value, parts.networks[name][key]), f"{name}.{key}"
    assert speak(tmp_path / "whole" / "FastPitch_checkpoint_2.pt", tmp_path).abs().max() > 0
    begun = ["--from-checkpoint", str(tmp_path / "whole" / "FastPitch_checkpoint_2.pt"), "--adversarial"]
    assert run_train(corpus, tmp_path / "begun", *begun, *"--epochs 1 -lr 1e-12 --weight-decay 0".split()) == 0
    kept = load_checkpoint(tmp_path / "begun" / "FastPitch_checkpoint_1.pt").networks["mel_discriminator"]
    for key, value in whole.networks["mel_discriminator"].items():
        torch.testing.assert_close(kept[key], value, atol=1e-6, rtol=0)
    # and a plain training continues from such a voice
    assert (
        run_train(corpus, tmp_path / "plain", "--from-checkpoint", given[1], "--no-adversarial", "--epochs", "1") == 0
    )


def speak(voice: Path, folder: Path, *extra: str, phrases: str = "a.wav|The rain came twice.\n") -> torch.Tensor:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "phrases.txt").write_text(phrases)
    words = ["-i", str(folder / "phrases.txt"), "-o", str(folder), "--fastpitch", str(voice), "--no-audio"]
    assert inference.main([*words, "--save-mels", *extra]) in (0, 1)  # 1: hardly trained, it makes a single frame
    return load_tensor(folder / "mels" / "a.pt")


def test_real_recordings_and_transcripts_alone_train_end_to_end(shared_data: Path, tmp_path: Path):
    source = shared_data / "LJSpeech-sample"
    rows = [row.split("|") for row in (source / "metadata.csv").read_text(encoding="utf-8").splitlines()]
    lines = [f"wavs/{row[0]}.wav|{row[2]}\n" for row in rows[:10]]
    (tmp_path / "wavs").symlink_to(source / "wavs")
    (tmp_path / "train.txt").write_text("".join(lines[:8]), encoding="utf-8")
    (tmp_path / "val.txt").write_text("".join(lines[8:]), encoding="utf-8")
    assert run_train(tmp_path, tmp_path / "out", "--epochs", "3", *ENERGY) == 0
    held = load_checkpoint(tmp_path / "out" / "FastPitch_checkpoint_3.pt")
    assert 180 < held.networks["fastpitch"]["pitch_mean"].item() < 280  # the reader's voice
    assert speak(tmp_path / "out" / "FastPitch_checkpoint_3.pt", tmp_path / "spoken").isfinite().all()


# Starting from another voice.


def tiny_voice(path: Path, *, text: TextConfig, n_speakers: int = 1, **changes) -> dict[str, torch.Tensor]:
    """Save a checkpoint of random weights; returns them."""
    options = {option[2:].replace("-", "_"): int(value) for option, value in zip(TINY_OPTIONS[::2], TINY_OPTIONS[1::2])}
    front_end = TextFrontEnd(text)
    config = ModelConfig(**options | {"n_symbols": front_end.n_symbols, "n_speakers": n_speakers} | changes)
    torch.manual_seed(0)
    network = build_networks(config, AudioConfig(), text)["fastpitch"]
    state = network.state_dict()
    state["pitch_mean"] += torch.arange(len(state["pitch_mean"])) + 200.0
    state["pitch_std"] += torch.arange(len(state["pitch_std"])) + 50.0
    held = Checkpoint("FastPitch", config, AudioConfig(), text, {"fastpitch": state})
    save_checkpoint(path, held)
    return state


def started(path: Path, *, text: TextConfig, speaking: set[str], n_speakers: int = 1, **changes):
    """A new tiny network that has started from the voice in ``path``, and the lines that it said."""
    tiny_voice(path.with_name("new.pt"), text=text, n_speakers=n_speakers, **changes)
    held = load_checkpoint(path.with_name("new.pt"))
    network = build_networks(held.config, AudioConfig(), text)["fastpitch"]
    lines = start_from(network, voice_of(path, load_checkpoint(path)), text=text, speaking=speaking)
    return network.state_dict(), lines


def test_symbols_keep_their_vectors_by_name_and_new_ones_start_from_the_mean(tmp_path: Path):
    old_text, new_text = TextConfig(symbol_set="english_basic"), TextConfig(symbol_set="english_expanded")
    old = tiny_voice(tmp_path / "old.pt", text=old_text)
    state, lines = started(tmp_path / "old.pt", text=new_text, speaking=set())
    before, after = TextFrontEnd(old_text), TextFrontEnd(new_text)
    vectors = dict(zip(before.symbols, old[SYMBOLS]))
    mean = torch.stack([vector for index, vector in enumerate(old[SYMBOLS]) if index != before.padding_id]).mean(0)
    for index, symbol in enumerate(after.symbols):
        wanted = torch.zeros_like(mean) if index == after.padding_id else vectors.get(symbol, mean)
        torch.testing.assert_close(state[SYMBOLS][index], wanted, msg=symbol)
    assert before.symbols != after.symbols[: len(before.symbols)] and len({*after.symbols} - {*before.symbols}) > 10
    assert len(lines) == 1 and lines[0].startswith("new symbols, from the mean of the others: ['\"', ")
    assert torch.equal(state["proj.weight"], old["proj.weight"])


def test_speakers_keep_their_vectors_and_statistics_by_name(tmp_path: Path):
    of_each = {"learned_alignment": True, "pitch_statistics_per_speaker": True}
    old = tiny_voice(tmp_path / "old.pt", text=TextConfig(speakers=("anna", "berta")), n_speakers=2, **of_each)
    text = TextConfig(speakers=("anna", "berta", "carl"))
    state, lines = started(tmp_path / "old.pt", text=text, speaking={"berta", "carl"}, n_speakers=3, **of_each)
    table = old["speaker_emb.weight"]
    assert torch.allclose(state["speaker_emb.weight"], torch.stack([table[0], table[1], table.mean(0)]), atol=1e-6)
    assert state["pitch_mean"].tolist() == [200.0, 0.0, 0.0]  # berta and carl are to be measured
    assert state["pitch_std"].tolist() == [50.0, 0.0, 0.0]
    assert lines == ["new speakers, from the mean of the others: ['carl']"]


def test_a_voice_of_one_speaker_gets_a_table_that_begins_with_zeros(tmp_path: Path):
    tiny_voice(tmp_path / "old.pt", text=TextConfig())
    text = TextConfig(speakers=("anna", "berta"))
    state, lines = started(tmp_path / "old.pt", text=text, speaking={"anna"}, n_speakers=2, learned_alignment=True)
    assert not state["speaker_emb.weight"].any()
    assert any("2 speakers start from zeros" in line for line in lines)
    assert any(line.startswith("attention is not in ") for line in lines)


def test_fine_tuning_takes_architecture_and_text_from_the_voice_and_starts_a_new_training(
    corpus: Path, voice: Path, tmp_path: Path, capsys: pytest.CaptureFixture
):
    lines = [line for line in (corpus / "train.txt").read_text().splitlines(True) if "|low" in line]
    (corpus / "dora.txt").write_text("".join(lines).replace("|low", "|dora"))
    words = ("--from-checkpoint", str(voice), "--epochs", "1")
    assert run_train(corpus, tmp_path, *words, lists=("dora.txt", "dora.txt")) == 0
    assert "'dora' starts from 'low'" in capsys.readouterr().out
    tuned, before = load_checkpoint(tmp_path / "FastPitch_checkpoint_1.pt"), load_checkpoint(voice)
    assert tuned.text.speakers == ("high", "low", "dora")
    assert replace(tuned.config, n_speakers=2) == before.config
    assert tuned.training["iteration"] == 1  # of a new schedule
    ours, theirs = tuned.networks["fastpitch"], before.networks["fastpitch"]
    assert torch.equal(ours["pitch_mean"][:2], theirs["pitch_mean"])
    assert ours["pitch_mean"][2].item() == pytest.approx(theirs["pitch_mean"][1].item(), rel=1e-4)
    assert run_train(corpus, tmp_path, *words[:3], "2", "--resume", lists=("dora.txt", "dora.txt")) == 0


@pytest.mark.parametrize("name", [*matching("fastpitch_1_1/*.pt")[:1], *matching("fastpitch_1_0/*.pt")[:1]])
def test_published_voices_are_fine_tuned(name: str, corpus: Path, goldens: Path, tmp_path: Path):
    n_mels = load_checkpoint(goldens / name).audio.n_mels
    extra = ("--from-checkpoint", str(goldens / name), "--epochs", "1")
    assert run_train(corpus, tmp_path, *extra) == 0
    tuned = load_checkpoint(tmp_path / "FastPitch_checkpoint_1.pt")
    assert tuned.audio.n_mels == n_mels
    assert tuned.text.speakers == ("high", "low")
    assert tuned.config.learned_alignment


def test_options_that_do_not_fit_the_voice_are_one_clear_line(corpus: Path, voice: Path, tmp_path: Path):
    for extra, message in (
        (("--checkpoint-path", str(voice)), "--checkpoint-path and --from-checkpoint"),
        (("--hop-length", "200"), "hop_length: 200"),
        (("--n-speakers", "1"), "--n-speakers 1: there are 2 speakers"),
    ):
        with pytest.raises(InputError, match=message) as caught:
            run_train(corpus, tmp_path, "--epochs", "1", "--from-checkpoint", str(voice), *extra)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "n_speakers", "known", "names"),
    [
        (["b", "a", "b"], None, (), ("a", "b")),
        (["10", "9", "2"], None, (), ("2", "9", "10")),
        (["1", "0"], 2, (), ()),  # numbers are the ids
        (["b", "a"], 1, (), ()),  # one voice, whatever the list says
        (["b", "a"], 4, (), ("a", "b")),
        (["b", "a"], None, ("z", "b"), ("z", "b", "a")),
        ([], None, (), ()),
        ([], None, ("z",), ("z",)),
    ],
)
def test_speakers_are_the_names_of_the_column(values: list[str], n_speakers: int, known: tuple, names: tuple):
    entries = [FilelistEntry({"wav": "a.wav", "text": "t", "speaker": value}, "list.txt:1") for value in values]
    entries = entries or [FilelistEntry({"wav": "a.wav", "text": "t"}, "list.txt:1")]
    assert speaker_names(entries, n_speakers, known=known) == names
