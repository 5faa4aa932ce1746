"""A small Tacotron 2 learns where a handful of real sentences are in their sound, and FastPitch trains on that."""

import sys
from pathlib import Path

import pytest
import torch
from tiny import TINY_OPTIONS as TINY_FASTPITCH

import extract_mels
import train
from common.checkpoints.loading import load_networks
from common.checkpoints.reading import load_checkpoint
from common.logger import read_log
from common.nn.alignment import diagonality, focus_rate
from common.text.options import TextOptions
from common.torch_file import load_tensor
from tacotron2.arg_parser import TrainingOptions
from tacotron2.data_function import Tacotron2Dataset

N_CLIPS = 6
AUDIO = ("--hop-length", "512")  # half as many steps as usual
SMALL = (
    "--symbols-embedding-dim 128 --encoder-embedding-dim 128 --encoder-n-convolutions 1 --attention-rnn-dim 64 "
    "--attention-dim 64 --attention-location-n-filters 16 --decoder-rnn-dim 64 --prenet-dim 16 "
    "--postnet-embedding-dim 32 --postnet-n-convolutions 2"
).split()
RUN = "-bs 3 -lr 4e-3 --validation-interval 20 --samples-interval 400 --seed 1".split()
GUIDED_EPOCHS, EPOCHS = 200, 300
DIAGONAL = 0.85  # of every sentence's attention
TEXT = "--text-cleaners english_cleaners --unknown-symbols drop".split()


def write_list(source: Path, folder: Path) -> None:
    """The sample's shortest recordings as ``train.txt``."""
    (folder / "wavs").symlink_to(source / "wavs")
    rows = [line.split("|") for line in (source / "metadata.csv").read_text(encoding="utf-8").splitlines()]
    rows.sort(key=lambda row: (source / "wavs" / f"{row[0]}.wav").stat().st_size)
    lines = [f"wavs/{name}.wav|{text}\n" for name, _, text in rows[:N_CLIPS]]
    (folder / "train.txt").write_text("".join(lines), encoding="utf-8")


def options(folder: Path, output: Path, filelist: str) -> list[str]:
    lists = ["--training-files", str(folder / filelist), "--validation-files", str(folder / filelist)]
    return ["-o", str(output), "-d", str(folder), *lists, *TEXT]


def attention_figures(folder: Path, path: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """Diagonality and focus of every sentence."""
    checkpoint = load_checkpoint(path)
    networks, _ = load_networks(checkpoint, device=torch.device("cpu"))
    options = TrainingOptions(text=TextOptions(unknown_symbols="drop"), dataset_path=folder)
    dataset = Tacotron2Dataset(options, folder / "train.txt", audio=checkpoint.audio, text=checkpoint.text)
    batch = dataset.collate([dataset[index] for index in range(len(dataset))])
    with torch.no_grad():
        alignments = networks["tacotron2"].eval().teacher_forced(batch).alignments
    lengths = batch.token_lengths, batch.mel_lengths
    return diagonality(alignments, *lengths), focus_rate(alignments, *lengths)


@pytest.mark.slow
def test_attention_becomes_diagonal_on_real_speech_and_gives_fastpitch_its_durations(
    shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    folder, output = tmp_path / "lj", tmp_path / "tacotron2"
    folder.mkdir()
    write_list(shared_data / "LJSpeech-sample", folder)
    words = ["-m", "Tacotron2", *options(folder, output, "train.txt"), *AUDIO, *SMALL, *RUN]
    assert train.main([*words, "--epochs", str(GUIDED_EPOCHS), "--guided-attention-weight", "1"]) == 0
    # From here on nothing draws attention to the diagonal: it stays for what it is worth to the mels.
    assert train.main([*words, "--epochs", str(EPOCHS), "--resume"]) == 0
    path = output / f"Tacotron2_checkpoint_{EPOCHS}.pt"
    figures, focus = attention_figures(folder, path)
    with capsys.disabled():
        print(f"diagonality {figures.tolist()}, focus {focus.tolist()}")
    assert float(figures.min()) > DIAGONAL

    words = "extract_mels.py --extract-mels --extract-durations --extract-pitch-char --num-workers 1".split()
    words += ["-d", str(folder), "--wav-text-filelist", str(folder / "train.txt")]
    words += ["--output-meta-file", str(folder / "fastpitch.txt"), "--tacotron2-checkpoint", str(path)]
    monkeypatch.setattr(sys, "argv", words)
    assert extract_mels.main() == 0
    for mel_path in (folder / "mels").glob("*.pt"):
        frames = load_tensor(folder / "durations" / mel_path.name)
        assert int(frames.sum()) == load_tensor(mel_path).size(1)
        assert (frames > 0).float().mean() > 0.5  # attention rests on most symbols of a text, not on a few

    words = [*options(folder, tmp_path / "fastpitch", "fastpitch.txt"), *TINY_FASTPITCH]
    run = "--epochs 30 -bs 3 --warmup-steps 10 --optimizer adam -lr 0.02 --validation-interval 30".split()
    assert train.main([*words, *run]) == 0
    records = read_log(tmp_path / "fastpitch" / "nvlog.json")
    losses = [r["data"]["avg_train_mel_loss"] for r in records if "avg_train_mel_loss" in r.get("data", {})]
    assert losses[-1] < 0.5 * losses[0]
