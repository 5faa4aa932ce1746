"""A first voice: an update that few clips fill, one size for a laptop, and commands to run next."""

import shlex
from pathlib import Path

import pytest
from shell import dry_run, training_options
from tiny import TINY_OPTIONS, make_corpus
from training_setup import values

import train
from common.checkpoints.reading import load_checkpoint
from common.config import to_plain
from speech_toolkit.__main__ import main, parser_of

LISTS = ("-o", "out", "--training-files", "a.txt", "--validation-files", "b.txt")


def test_a_training_on_few_clips_fits_its_updates_to_them_and_ends_with_commands_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
):
    make_corpus(tmp_path / "corpus", count=24, val=4)
    monkeypatch.chdir(tmp_path)
    words = "-o output/anna -d corpus --training-files corpus/train.txt --validation-files corpus/val.txt --epochs 1"
    statistics = ("--pitch-mean-std-file", "corpus/pitch_char_stats__train.json")
    assert train.main([*words.split(), *TINY_OPTIONS, *statistics, "-bs", "8", "--grad-accumulation", "4"]) == 0
    said = capsys.readouterr().out.splitlines()
    (line,) = (line for line in said if line.startswith("20 utterances are too few"))
    assert line.endswith("using --batch-size 8 --gradient-accumulation-steps 2")
    steps = {line.split(":")[0]: shlex.split(line.partition(": ")[2]) for line in said[-3:]}
    assert list(steps) == ["next, to speak", "next, to serve", "next, to export"]
    checkpoint = tmp_path / "output/anna/FastPitch_checkpoint_1.pt"
    _, served, exported = ([*words[words.index("speech_toolkit") + 1 :]] for words in steps.values())
    assert parser_of(served[0]).parse_args(served[1:]).fastpitch.resolve() == checkpoint
    assert main(exported) in (0, None) and checkpoint.with_suffix(".onnx").is_file()


def test_a_size_stands_for_network_batch_and_schedule_each_of_which_can_be_set():
    small = values(*LISTS, "--size", "small", "--batch-size", "4")
    assert (small["batch_size"], small["optimizer"], small["mean_mel_bias"]) == (4, "adam", True)
    shipped = to_plain(load_checkpoint(Path("voices/en-small.pt")).config)
    assert all(small[name] == value for name, value in shipped.items() if "_fft_" in name or "_embedding_dim" in name)
    widths = [values(*LISTS, "--size", size)["symbols_embedding_dim"] for size in ("small", "medium", "full")]
    assert widths == [192, 256, 384] and values(*LISTS, "--size", "full")["batch_size"] == 32
    assert training_options(dry_run("scripts/train.sh", SIZE="small", MODEL="FastPitch")[0]).size == "small"
