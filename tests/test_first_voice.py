"""A first voice: the quickstart, updates that few clips fill, one size for a laptop, and commands to run next."""

import shlex
from pathlib import Path

import numpy as np
import pytest
import soundfile
from shell import dry_run, training_options
from tiny import TINY_OPTIONS, make_corpus
from training_setup import values

import train
from common.checkpoints.reading import load_checkpoint
from common.config import to_plain
from common.errors import InputError
from scripts.demos import quickstart
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
    del shipped["out_fft_conv1d_filter_size"]  # the shipped decoder is twice as wide
    assert all(small[name] == value for name, value in shipped.items() if "_fft_" in name or "_embedding_dim" in name)
    widths = [values(*LISTS, "--size", size)["symbols_embedding_dim"] for size in ("small", "medium", "full")]
    assert widths == [192, 256, 384] and values(*LISTS, "--size", "full")["batch_size"] == 32
    assert training_options(dry_run("scripts/train.sh", SIZE="small", MODEL="FastPitch")[0]).size == "small"


@pytest.fixture
def tiny(monkeypatch, tmp_path) -> list[str]:
    """Options of a run that is over in seconds and cannot have learned to speak."""
    names = [one for one in quickstart.TRAINING if one.endswith(("dim", "output-size", "filter-size", "n-layers"))]
    small = [word for name in names for word in (name, "1" if name.endswith("n-layers") else "32")]
    small += ["--batch-size", "2", "--warmup-steps", "1"]
    monkeypatch.setattr(quickstart, "TRAINING", [*quickstart.TRAINING, *small])
    monkeypatch.setattr(quickstart, "N_VALIDATION", 1)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    sentences = tmp_path / "sentences.txt"
    sentences.write_text(
        "".join(quickstart.SENTENCES.read_text(encoding="utf-8").splitlines(True)[:5]), encoding="utf-8"
    )
    phrases = tmp_path / "phrases.tsv"
    phrases.write_text("output\ttext\nfirst.wav\tGood morning.\nsecond\tShe stopped, and looked.\n", encoding="utf-8")
    return ["--sentences", str(sentences), "--phrases", str(phrases), "--output", str(tmp_path / "q"), "--epochs", "1"]


@pytest.mark.slow
def test_an_untrained_voice_goes_all_the_way_and_fails_at_the_bound_and_resumes(tiny, tmp_path, capfd, monkeypatch):
    with pytest.raises(InputError, match=r"mean distortion, .* dB, is above .* dB: the voice has not learned"):
        quickstart.main(tiny)
    for name in ("first", "second"):
        samples, rate = soundfile.read(tmp_path / "q" / f"{name}.wav")
        assert rate == 22050
        assert np.abs(samples).max() > 0
        assert (tmp_path / "q" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (tmp_path / "q" / "reference" / f"{name}.wav").is_file()
    out = capfd.readouterr().out
    assert "mean distortion" in out
    first_checkpoint = (tmp_path / "q" / "voice" / "FastPitch_checkpoint_1.pt").stat().st_mtime_ns
    monkeypatch.setattr(quickstart, "MAX_DISTORTION_DB", 1000)
    quickstart.main(tiny)  # within the bound
    assert (tmp_path / "q" / "voice" / "FastPitch_checkpoint_1.pt").stat().st_mtime_ns == first_checkpoint
