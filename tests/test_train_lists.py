"""Training takes the lists that preparation makes, and the FastPitch that they are for."""

import re
from pathlib import Path

import pytest
from corpus import make_corpus as make_clips
from shell import dry_run, training_options
from tiny import TINY_OPTIONS

import extract_mels
import train
from common.checkpoints.reading import load_checkpoint
from common.logger import read_log

WITH_DURATIONS = "mels/a.pt|durations/a.pt|pitch_char/a.pt|Hello.\n"


def test_the_lists_of_a_name_are_taken_with_durations_where_there_are_any(tmp_path: Path):
    settings = {"NAME": "my", "FILELISTS": str(tmp_path), "DATASET_PATH": "my"}
    args = training_options(dry_run("scripts/train.sh", ENERGY="false", **settings)[0])
    assert args.training_files == [tmp_path / "my_audio_text_train_filelist.txt"]
    assert (args.learned_alignment, args.energy_conditioning) == (True, False)
    with_durations = tmp_path / "my_mel_dur_pitch_text_train_filelist.txt"
    with_durations.write_text(WITH_DURATIONS)
    args = training_options(dry_run("scripts/train.sh", **settings)[0])
    assert (args.training_files, args.validation_files) == ([with_durations], [with_durations]), "there is no other"
    assert (args.learned_alignment, args.energy_conditioning) == (False, False)
    assert args.pitch_mean_std_file == Path("my/pitch_char_stats__my_audio_text_train_filelist.json")
    args = training_options(dry_run("scripts/train.sh", LEARNED_ALIGNMENT="true", **settings)[0])
    assert (args.training_files[0].name, args.energy_conditioning) == ("my_audio_text_train_filelist.txt", False)
    args = training_options(dry_run("scripts/train.sh", MODEL="HiFi-GAN", **settings)[0])
    assert args.training_files == [tmp_path / "my_audio_train.txt"]


@pytest.mark.parametrize("symbol_set", ["arpabet", "ipa"])
def test_durations_of_text_grids_train_on_the_same_list_and_on_that_of_phones(symbol_set: str, tmp_path: Path, capsys):
    corpus = make_clips(tmp_path / "corpus", 4)
    for grid in corpus.glob("TextGrid/*") if symbol_set == "ipa" else ():  # labels of the Montreal Forced Aligner
        grid.write_text(re.sub(r'"([A-Z]+[0-9]?)"', '"tʃ"', grid.read_text()))
    made = ["--extract-mels", "--extract-durs-from-textgrids", "--extract-pitch-char", "--output-meta-file"]
    words = ["-d", corpus, "--wav-text-filelist", corpus / "train.txt", *made, corpus / "phones.txt"]
    assert extract_mels.main([*map(str, words), "--num-workers", "1"]) == 0
    for name, extra in (("train", ""), ("phones", ""), ("train", f"--input-type phone --symbol-set {symbol_set}")):
        words = ["-d", corpus, "-o", tmp_path / f"{name}{bool(extra)}", *TINY_OPTIONS, "--epochs", "1", "-bs", "2"]
        words += [word for kind in ("training", "validation") for word in (f"--{kind}-files", corpus / f"{name}.txt")]
        words += ["--pitch-mean-std-file", corpus / "pitch_char_stats__train.json", *extra.split()]
        assert train.main([*map(str, words)]) == 0
        text = load_checkpoint(tmp_path / f"{name}{bool(extra)}" / "FastPitch_checkpoint_1.pt").text
        assert (text.input_type, text.symbol_set) == ("phone", symbol_set)
        records = read_log(tmp_path / f"{name}{bool(extra)}" / "nvlog.json")
        logged = next(one["data"] for one in records if one.get("step") == "PARAMETER")
        assert [logged[one] for one in ("input_type", "symbol_set", "text_cleaners")] == ["phone", symbol_set, []]
        assert (f"--symbol-set {symbol_set}" in capsys.readouterr().out) == (not extra)
