"""Jasper trained by train.py: it learns, and what is wrong with its data is named."""

import json
from pathlib import Path

import pytest
import torch
from sung_words import RATE, make_sung_corpus, training_options
from tiny_models import logged

import train
from common.audio.wav import save_wav
from common.errors import InputError
from jasper.arg_parser import TrainingOptions
from jasper.data_function import JasperDataset
from jasper.yaml_config import load_config


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_sung_corpus(tmp_path_factory.mktemp("sung"))


def test_it_learns_what_is_sung(sung_run: Path):
    losses = logged(sung_run, "avg_train_loss")
    assert losses[-1] < 0.2 * losses[0]
    assert logged(sung_run, "val_wer")[-1] == 0.0


def dataset(
    corpus: Path, source: str = "train.txt", *, seed: int = 0, overrides: tuple[str, ...] = ()
) -> JasperDataset:
    settings = load_config(corpus / "config.yaml", overrides=overrides)
    return JasperDataset(TrainingOptions(settings=settings, dataset_path=corpus, seed=seed), [corpus / source])


def test_what_training_reads_is_decided_by_seed_epoch_and_index(corpus: Path):
    overrides = ("input_train.audio_dataset.speed_perturbation.p=1.0",)
    first, again = dataset(corpus, overrides=overrides), dataset(corpus, overrides=overrides)
    for index, epoch in ((3, 1), (0, 2), (3, 1)):
        one, other = first.draw(index, epoch=epoch), again.draw(index, epoch=epoch)
        assert torch.equal(one.waves, other.waves) and torch.equal(one.draws, other.draws)
    lengths = {first.draw(3, epoch=epoch).wave_lengths.item() for epoch in range(8)}
    assert len(lengths) > 4, "other speeds in other epochs"
    other = dataset(corpus, seed=1, overrides=overrides)
    assert other.draw(3, epoch=1).wave_lengths != first.draw(3, epoch=1).wave_lengths
    assert torch.equal(first[3].waves, again[3].waves) and first[3].draws is None


def test_copies_of_other_speeds_are_read_as_often_as_the_original_or_not_at_all(tmp_path: Path):
    corpus = make_sung_corpus(tmp_path)
    for name, n_samples in (("a", 2000), ("a-0.9", 2222), ("a-1.1", 1818)):
        save_wav(corpus / f"{name}.wav", 0.1 * torch.randn(n_samples), sampling_rate=RATE)
    files = [{"fname": "a.wav", "speed": 1}, {"fname": "a-0.9.wav", "speed": 0.9}, {"fname": "a-1.1.wav", "speed": 1.1}]
    (corpus / "m.json").write_text(json.dumps([{"transcript": "do", "files": files, "original_duration": 0.25}]))
    overrides = ("input_train.audio_dataset.speed_perturbation.p=0.0", "input_train.audio_dataset.trim_silence=false")
    found = dataset(corpus, "m.json", overrides=overrides)
    heard = [found.draw(0, epoch=epoch).wave_lengths.item() for epoch in range(60)]
    assert set(heard) == {2000, 2222, 1818}
    assert all(heard.count(length) > 10 for length in set(heard))
    overrides += ("input_train.audio_dataset.ignore_offline_speed_perturbation=true",)
    ignoring = dataset(corpus, "m.json", overrides=overrides)
    assert {ignoring.draw(0, epoch=epoch).wave_lengths.item() for epoch in range(20)} == {2000}
    assert dataset(corpus, "m.json", overrides=overrides[:2])[0].wave_lengths.item() == 2000


def test_batches_of_one_shape_are_padded_to_the_longest_duration(corpus: Path):
    values = ("max_duration=0.4", "pad_to_max_duration=true", "speed_perturbation={p: 1.0, min_rate: 0.5}")
    data = dataset(corpus, overrides=tuple(f"input_train.audio_dataset.{one}" for one in values))
    for epoch in range(4):
        assert data.collate([data.draw(index, epoch=epoch) for index in range(4)]).waves.shape == (4, 3200)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0.wav", "train.txt:1: 1 columns"),
        ("absent.wav|do", r"absent\.wav: no such file \(.*train\.txt:25\)"),
        ("0.wav|", r"0\.wav \(.*train\.txt:25\): its transcript '' has none of the model's characters"),
        ("0.wav|xyz", r"0\.wav \(.*train\.txt:25\): its transcript 'xyz' has none of the model's characters"),
        (f"0.wav|{'do ' * 20}", r"0\.wav \(.*train\.txt:25\): 0\.\d\d s are too short for its transcript"),
        ("0.wav|do 3 mi 1999", r"0\.wav \(.*train\.txt:25\): no labels for 3, 1999 in its transcript"),
        ("0.wav|dö größe", r"train\.txt:25: 'dö' has 'ö', .* labels"),
        ("broken.wav|do", r"broken\.wav: .*\(.*train\.txt:25\)"),
    ],
)
def test_bad_lists_end_in_one_line_that_names_the_entry(corpus: Path, tmp_path: Path, line: str, message: str):
    (tmp_path / "train.txt").write_text((corpus / "train.txt").read_text() + line + "\n")
    (corpus / "broken.wav").write_bytes((corpus / "0.wav").read_bytes()[:999])
    options = training_options(corpus, tmp_path / "o", "--epochs", "1", "--training-files", str(tmp_path / "train.txt"))
    if "1999" in line:  # else it is read in English
        options += ["--override-config", "input_train.audio_dataset.normalize_transcripts=false"]
    if line == "0.wav":
        (tmp_path / "train.txt").write_text("0.wav\n")
        message = r"0\.wav \(.*train\.txt:1\): no transcript; training and validation need one of every utterance"
    with pytest.raises(InputError, match=message) as raised:
        train.main(options)
    assert len(str(raised.value).splitlines()) == 1


def test_a_short_utterance_that_perturbation_or_trimming_spoils_is_read_as_it_is(tmp_path: Path):
    corpus = make_sung_corpus(tmp_path)
    wave = torch.zeros(880)  # 11 frames, of which 6 come out
    wave[400:480] = 0.5
    save_wav(corpus / "short.wav", wave, sampling_rate=RATE)
    (corpus / "short.txt").write_text("short.wav|do re\n")
    overrides = ("trim_silence=true", "speed_perturbation=null")
    data = dataset(corpus, "short.txt", overrides=tuple(f"input_train.audio_dataset.{one}" for one in overrides))
    assert data[0].wave_lengths.item() == data.draw(0, epoch=1).wave_lengths.item() == 880
