"""``--training-files`` and ``--validation-files`` with several lists: one dataset, whatever file a line stands in."""

from pathlib import Path

import pytest
from tiny import make_corpus, train_options
from tiny_models import EPOCHS, MODELS, RUN, Runs, TinyModel, assert_same_state, logged, of_every_model, without_samples

import train
from common.errors import InputError
from common.logger import read_last_run


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
    options, _ = read_last_run(output / "nvlog.json")
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
