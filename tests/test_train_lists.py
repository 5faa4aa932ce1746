"""Filelists: problems are named by file and line, and one or several train the FastPitch that they are for."""

import re
from pathlib import Path

import pytest
from corpus import make_corpus as make_clips
from shell import dry_run, training_options
from tiny import TINY_OPTIONS, make_corpus, train_options
from tiny_models import EPOCHS, MODELS, RUN, Runs, TinyModel, assert_same_state, logged, of_every_model, without_samples

import extract_mels
import train
from common.checkpoints.reading import load_checkpoint
from common.data.filelist import read_filelist
from common.errors import InputError
from common.logger import read_log

WITH_DURATIONS = "mels/a.pt|durations/a.pt|pitch_char/a.pt|Hello.\n"


def test_the_lists_of_a_name_are_taken_with_durations_where_there_are_any(tmp_path: Path):
    settings = {"NAME": "my", "FILELISTS": str(tmp_path), "DATASET_PATH": "my"}
    args = training_options(dry_run("scripts/train.sh", ENERGY="false", PHONE="true", **settings)[0])
    assert args.training_files == [tmp_path / "my_audio_text_train_filelist.txt"]
    assert (args.learned_alignment, args.energy_conditioning, args.p_arpabet) == (True, False, 1.0)
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


def split(filelist: Path, folder: Path, *sizes: int) -> list[str]:
    """Lists of so many lines each, and one of the rest."""
    lines = filelist.read_text().splitlines(keepends=True)
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{filelist.stem}{index}.txt" for index in range(len(sizes) + 1)]
    for path, size in zip(paths, (*sizes, len(lines))):
        path.write_text("".join(lines[:size]))
        del lines[:size]
    return [str(path) for path in paths]


@pytest.mark.parametrize("model", [MODELS[0], MODELS[1], MODELS[4]], ids=lambda model: model.name)
def test_several_lists_train_as_one_and_resume_exactly(model: TinyModel, make_once, corpora: Path, tmp_path: Path):
    folder, output = corpora / model.corpus, tmp_path / "out"
    training = split(folder / "train.txt", tmp_path / "lists", 3, 9)
    validation = split(folder / "val.txt", tmp_path / "lists", 1)
    words = [*RUN, "--training-files", *training, "--validation-files", *validation, "--resume"]
    with without_samples():
        assert model.train(corpora, output, *words, "--epochs-this-job", "1") == 0
        assert model.train(corpora, output, *words) == 0
    plain = Runs(make_once, corpora, model).plain
    assert_same_state(model.checkpoint(output, EPOCHS), model.checkpoint(plain, EPOCHS))
    assert logged(output, "val_loss")[-1] == logged(plain, "val_loss")[-1]
    options = next(one["data"] for one in read_log(output / "nvlog.json") if one.get("step") == "PARAMETER")
    assert (options["training_files"], options["validation_files"]) == (training, validation)


@of_every_model
def test_an_error_names_the_list_of_several_and_its_line(model: TinyModel, corpora: Path, tmp_path: Path):
    first, second = split(corpora / model.corpus / "train.txt", tmp_path, 3)
    absent = Path(second).read_text().splitlines()[0].replace(".pt", "_.pt").replace(".wav", "_.wav")
    Path(second).write_text(f"{absent}\n")
    with pytest.raises(InputError, match=rf"\({second}:1\)"):
        model.train(corpora, tmp_path / "out", "--epochs", "1", "--training-files", first, second)
    Path(second).write_text("")
    with pytest.raises(InputError, match=rf"{second}: the list is empty"):
        model.train(corpora, tmp_path / "out", "--epochs", "1", "--training-files", first, second)


def test_lists_of_fastpitch_have_the_same_columns_and_statistics(tmp_path: Path):
    corpus = make_corpus(tmp_path / "corpus", count=8)
    first, second = split(corpus / "train.txt", tmp_path, 2)
    Path(second).write_text("".join(f"{line}|anna\n" for line in Path(second).read_text().splitlines()))
    words = train_options(corpus, tmp_path / "out", "--epochs", "1", "--training-files", first, second)
    with pytest.raises(InputError, match=rf"{second}:1: mel\|.*\|speaker, but {first}:1 has mel\|.*\|text; expected"):
        train.main(words)
    split(corpus / "train.txt", tmp_path, 2)
    for path, mean in ((first, 100.0), (second, 200.0)):
        (corpus / f"pitch_char_stats__{Path(path).stem}.json").write_text(f'{{"mean": {mean}, "std": 20.0}}')
    with pytest.raises(InputError, match=r"differ: .*train0\.json, .*train1\.json; .*--pitch-mean-std-file"):
        train.main(words)
    (corpus / "pitch_char_stats__train1.json").write_text('{"mean": 100.0, "std": 20.0}')
    with without_samples():
        assert train.main([*words, "-bs", "2"]) == 0


def read(path: Path, content: str | bytes, **kwargs):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_filelist(path, **{"columns": ("wav", "text"), "optional": ("speaker",), **kwargs})


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_fields_and_lines_are_found_whatever_ends_the_lines(tmp_path: Path, newline: str, encoding: str):
    path = tmp_path / "list.txt"
    text = "wavs/a.wav|Grüße,\t„Welt\u2028“\n\n wavs/b.wav | two words "
    entries = read(path, text.replace("\n", newline).encode(encoding))
    assert [entry.fields for entry in entries] == [
        {"wav": "wavs/a.wav", "text": "Grüße,\t„Welt\u2028“"},
        {"wav": "wavs/b.wav", "text": "two words"},
    ]
    assert [entry.where for entry in entries] == [f"{path}:1", f"{path}:3"]


def test_an_optional_column_is_there_in_all_lines_or_in_none(tmp_path: Path):
    path = tmp_path / "list.txt"
    entries = read(path, "wavs/a.wav|a|0\nwavs/b.wav|b|1\n")
    assert [entry.fields["speaker"] for entry in entries] == ["0", "1"]
    with pytest.raises(InputError, match=r"list\.txt:2: 2 columns, but .*list\.txt:1 has 3"):
        read(path, "wavs/a.wav|a|0\nwavs/b.wav|b\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"list\.txt: the list is empty, expected lines of wav\|text\[\|speaker\]"),
        ("\n\n", r"list\.txt: the list is empty"),
        ("wavs/a.wav|a\nwavs/b.wav\n", r"list\.txt:2: 1 columns, expected wav\|text\[\|speaker\]"),
        ("wavs/a.wav|a|b|c\n", r"list\.txt:1: 4 columns, expected wav\|text"),
        ("wavs/a.wav|a\n|b\n", r"list\.txt:2: the wav column is empty"),
        ("wavs/a.wav| \n", r"list\.txt:1: the text column is empty"),
        ("/data/a.wav|a\n", r"list\.txt:1: /data/a\.wav is outside the dataset"),
        ("wavs/../../a.wav|a\n", r"list\.txt:1: wavs/\.\./\.\./a\.wav is outside the dataset"),
        (b"wavs/a.wav|a\nwavs/b.wav|Gr\xfc\xdfe\n", r"list\.txt:2: byte 14 is not UTF-8"),
    ],
)
def test_a_bad_list_is_one_clear_line(tmp_path: Path, content: str | bytes, message: str):
    with pytest.raises(InputError, match=message) as caught:
        read(tmp_path / "list.txt", content)
    assert "\n" not in str(caught.value)


def test_what_is_only_read_may_lie_anywhere(tmp_path: Path):
    path = tmp_path / "list.txt"
    path.write_text("/data/a.wav\n../b.wav\n")
    entries = read_filelist(path, columns=("wav",), anywhere=True)
    assert [entry.fields["wav"] for entry in entries] == ["/data/a.wav", "../b.wav"]


def test_lines_of_a_metadata_csv_are_recordings_of_the_corpus_with_their_normalized_transcript(tmp_path: Path):
    path = tmp_path / "metadata.csv"
    entries = read(path, "LJ001-0001|It is No. 1.|It is number one.\nLJ001-0002|plain|\nLJ001-0003|two columns\n")
    texts = ["It is number one.", "plain", "two columns"]
    assert [entry.fields for entry in entries] == [
        {"wav": f"wavs/LJ001-000{number}.wav", "text": text} for number, text in enumerate(texts, 1)
    ]
    with pytest.raises(InputError, match=r"metadata\.csv:1: the text column is empty"):
        read(path, "LJ001-0001||\n")
    mixed = read(path, "LJ001-0001|raw|normalized\nwavs/other.wav|a transcript\n")
    assert [entry.fields["wav"] for entry in mixed] == ["wavs/LJ001-0001.wav", "wavs/other.wav"]


SENTENCES = ["the first one is here", "and a second one too", "third of them", "fourth and last one"]
JAPANESE = ["水をマレーシアから買う", "木曜日の停戦会談は", "上院議員は私がデータを", "私たちは会談をした"]
NAMES = ["anna", "ben", "anna", "ben"]


@pytest.mark.parametrize(
    ("texts", "speakers", "is_right"),
    [
        (SENTENCES, NAMES, True),
        (NAMES, SENTENCES, False),
        ("0101", SENTENCES, False),
        (NAMES, JAPANESE, False),
        (NAMES, SENTENCES[:2] * 2, False),
        (["anna"], SENTENCES[:1], False),
        (["yes", "no"] * 2, ["p1", "p2", "p3", "p4"], True),
        (["yes", "no"] * 2, ["Karen Savage", "John Smith", "Ann Lee", "Bo Li"], True),
        ([""] * 4, NAMES, True),
    ],
)
def test_speakers_that_are_sentences_are_refused(tmp_path: Path, texts, speakers, is_right: bool):
    lines = "".join(f"w/{number}.wav|{text}|{name}\n" for number, (text, name) in enumerate(zip(texts, speakers)))
    if is_right:
        assert len(read(tmp_path / "list.txt", lines, may_be_empty=("text",))) == len(texts)
        return
    with pytest.raises(InputError, match=rf"list\.txt:1: .*{speakers[0]}.*wav\|text\[\|speaker\]"):
        read(tmp_path / "list.txt", lines)
