"""Priors of alignments that extract_mels.py stores, and that FastPitch 1.1 trains on as on those that it computes."""

import re
import shutil
from pathlib import Path

import pytest
import torch
from corpus import make_corpus
from tiny import train_options
from tiny_models import without_samples

import extract_mels
import train
from common.checkpoints.reading import load_checkpoint
from common.errors import InputError, OptionError
from common.nn.alignment import interpolated_prior

TRAIN = "--learned-alignment --p-arpabet 0 --epochs 1 -bs 2".split()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recordings whose first is in a subfolder, with their priors."""
    folder = make_corpus(tmp_path_factory.mktemp("priors"), 4)
    shutil.rmtree(folder / "TextGrid")
    (folder / "wavs/s").mkdir()
    (folder / "wavs/c000.wav").rename(folder / "wavs/s/c000.wav")
    lines = (folder / "train.txt").read_text().replace("wavs/c000", "wavs/s/c000")
    (folder / "train.txt").write_text(lines)
    (folder / "val.txt").write_text(lines)
    assert extract(folder, "--extract-mels") == 0
    return folder


def extract(folder: Path, *options: str) -> int:
    words = ["-d", str(folder), "--wav-text-filelist", str(folder / "train.txt"), "--num-workers", "1"]
    return extract_mels.main([*words, "--save-alignment-priors", *options])


def train_on(corpus: Path, output: Path, *options: str) -> dict[str, torch.Tensor]:
    with without_samples():
        assert train.main(train_options(corpus, output, *TRAIN, *options)) == 0
    return load_checkpoint(output / "FastPitch_checkpoint_1.pt").networks["fastpitch"]


def test_stored_priors_are_those_that_training_computes(corpus: Path, tmp_path: Path):
    prior = torch.load(corpus / "alignment_priors/s/c000.pt", weights_only=True)
    mel = torch.load(corpus / "mels/s/c000.pt", weights_only=True)
    assert prior.dtype == torch.float32
    assert torch.equal(prior, interpolated_prior(mel.size(1), prior.size(1)).float())
    computed = train_on(corpus, tmp_path / "computed")
    stored = train_on(corpus, tmp_path / "stored", "--alignment-priors", str(corpus / "alignment_priors"))
    assert all(torch.equal(stored[key], value) for key, value in computed.items())
    uniform = tmp_path / "uniform"
    shutil.copytree(corpus / "alignment_priors", uniform)
    for path in uniform.rglob("*.pt"):
        torch.save(torch.full_like(torch.load(path, weights_only=True), 0.05), path)
    other = train_on(corpus, tmp_path / "other", "--alignment-priors", str(uniform))
    assert any(not torch.equal(other[key], value) for key, value in computed.items()), "the files are read"


def test_resuming_keeps_priors_of_the_right_size_alone(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture):
    folder = shutil.copytree(corpus, tmp_path / "copy")
    torch.save(torch.ones(3, 4), folder / "alignment_priors/c001.pt")
    assert extract(folder, "--resume") == 0
    assert re.search(r"alignment_priors/ +1 +3", capsys.readouterr().out)
    words = f"train with these options and --alignment-priors {folder}/alignment_priors"
    assert extract(folder, "--symbol-set", "english_basic_lowercase", "--text-cleaners", "english_cleaners") == 0
    out = capsys.readouterr().out
    assert f"--symbol-set english_basic_lowercase --text-cleaners english_cleaners; {words}" in out


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (torch.ones(3, 4), r"c001\.pt: shape \(3, 4\), expected \(\d+, \d+\), frames and symbols"),
        (None, r"c001\.pt: no such file \(\S*train\.txt:2\)"),
    ],
)
def test_a_prior_that_does_not_fit_its_utterance_is_named(
    corpus: Path, tmp_path: Path, tensor: torch.Tensor | None, message: str
):
    folder = shutil.copytree(corpus / "alignment_priors", tmp_path / "priors")
    (folder / "c001.pt").unlink()
    if tensor is not None:
        torch.save(tensor, folder / "c001.pt")
    with pytest.raises(InputError, match=message):
        train_on(corpus, tmp_path / "out", "--alignment-priors", str(folder))


def test_options_that_do_not_go_with_priors_are_refused(corpus: Path, tmp_path: Path):
    with pytest.raises(OptionError, match="--save-alignment-priors is for lists without durations"):
        extract(corpus, "--extract-durs-from-textgrids")
    with pytest.raises(OptionError, match="--alignment-priors are of fixed symbols, and --p-arpabet draws others"):
        train_on(corpus, tmp_path / "out", "--alignment-priors", "priors", "--p-arpabet", "0.5")
