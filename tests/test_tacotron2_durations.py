"""Tacotron 2 as the teacher of extract_mels.py: durations, attention, mels, and FastPitch trained on them."""

import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from corpus import add_clip, make_corpus
from tiny import train_options
from tiny_tacotron2 import TINY, tiny_network
from torch import Tensor

import extract_mels
import train
from common.audio.pitch import average_pitch, estimate_pitch
from common.audio.wav import load_wav
from common.checkpoints.checkpoint import Checkpoint, save_checkpoint
from common.checkpoints.reading import load_checkpoint
from common.cli import run
from common.config import AudioConfig, to_plain
from common.files import read_json
from common.logger import read_log
from common.synthesis.utterances import MelOutput
from common.text.config import TextConfig
from common.text.front_end import TextFrontEnd
from common.torch_file import load_tensor
from tacotron2.arg_parser import TrainingOptions
from tacotron2.data_function import Tacotron2Dataset
from tacotron2.model import Tacotron2

OPTIONS = {"n_mel_channels": 80, "n_symbols": 148}
FOLDERS = ("mels", "durations", "attentions", "mels_teacher", "pitch_char")
ALL = (
    *("--extract-mels", "--extract-durations", "--extract-attentions", "--extract-mels-teacher"),
    "--extract-pitch-char",
)
N_CLIPS = 6


def new_network(seed: int = 0) -> Tacotron2:
    """Random weights whose attention differs between symbols."""
    network = tiny_network(seed=seed, **OPTIONS)
    with torch.no_grad():
        network.embedding.weight.mul_(20)
        for parameter in network.decoder.parameters():
            parameter.mul_(2)
    return network


def save(path: Path, network: Tacotron2, **changes) -> Path:
    config = replace(TINY, **OPTIONS)
    checkpoint = Checkpoint("Tacotron2", config, AudioConfig(), TextConfig(), {"tacotron2": network.state_dict()})
    save_checkpoint(path, replace(checkpoint, **changes))
    return path


@pytest.fixture(scope="module")
def network() -> Tacotron2:
    return new_network()


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory, network: Tacotron2) -> Path:
    return save(tmp_path_factory.mktemp("tacotron2") / "Tacotron2_checkpoint_1.pt", network)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return make_corpus(tmp_path / "corpus", N_CLIPS, seconds=0.6)


Extract = Callable[..., tuple[int, str, str]]


@pytest.fixture
def extract(corpus: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> Extract:
    """Run the command in this process: (exit status, stdout, stderr without progress)."""

    def call(*options: str | Path, model: Path = checkpoint) -> tuple[int, str, str]:
        words = ["-d", corpus, "--wav-text-filelist", corpus / "train.txt", "--num-workers", 1, *options]
        words += ["--output-meta-file", corpus / "train.meta", "--tacotron2-checkpoint", model]
        monkeypatch.setattr(sys, "argv", ["extract_mels.py", *map(str, words)])
        with pytest.raises(SystemExit) as exit_status:
            run(extract_mels.main)
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        lines = [line for line in err.splitlines() if line.startswith(("error", "warning", "interrupted"))]
        return int(exit_status.value.code), out, "\n".join(lines)

    return call


def features(folder: Path) -> dict[str, dict[str, Tensor]]:
    """Folder -> clip -> its tensor."""
    return {
        name: {path.stem: load_tensor(path) for path in sorted((folder / name).glob("*.pt"))}
        for name in FOLDERS
        if (folder / name).is_dir()
    }


def same(first: dict[str, dict[str, Tensor]], second: dict[str, dict[str, Tensor]]) -> None:
    """Equal but for rounding, whole numbers altogether."""
    assert first.keys() == second.keys()
    for folder, clips in first.items():
        assert clips.keys() == second[folder].keys() and clips
        for name, tensor in clips.items():
            exact = folder in ("mels", "durations", "pitch_char")
            torch.testing.assert_close(tensor, second[folder][name], rtol=0, atol=0 if exact else 2e-5)


def alone(network: Tacotron2, corpus: Path) -> dict[str, MelOutput]:
    """What the network makes of each clip by itself."""
    dataset = Tacotron2Dataset(
        TrainingOptions(dataset_path=corpus), corpus / "train.txt", audio=AudioConfig(), text=TextConfig()
    )
    outputs = {}
    for item in map(dataset.__getitem__, range(len(dataset))):
        with torch.inference_mode():
            outputs[Path(item.names[0].split()[0]).stem] = network.teacher_forced(item)
    return outputs


def count(attention: Tensor) -> Tensor:
    """Frames (L,) whose largest weight is that of each symbol, one after the other."""
    durations = torch.zeros(attention.size(1), dtype=torch.int64)
    for frame in attention:
        durations[max(range(len(frame)), key=lambda token: float(frame[token]))] += 1
    return durations


def test_each_clip_is_teacher_forced_as_if_it_were_alone(corpus: Path, extract: Extract, network: Tacotron2):
    status, out, _ = extract(*ALL, "--num-workers", "2")
    assert status == 0
    made = features(corpus)
    truth = alone(network, corpus)
    assert truth.keys() == made["durations"].keys() and len(truth) == N_CLIPS
    for name, output in truth.items():
        n_frames = made["mels"][name].size(1)
        torch.testing.assert_close(made["attentions"][name], output.alignments[0], rtol=0, atol=2e-5)
        torch.testing.assert_close(made["mels_teacher"][name], output.mel[0], rtol=0, atol=2e-5)
        durations = made["durations"][name]
        assert torch.equal(durations, count(made["attentions"][name])) and durations.dtype == torch.int64
        assert int(durations.sum()) == n_frames and durations.count_nonzero() > 1
        assert len(durations) == len(made["pitch_char"][name])
    wave = load_wav(corpus / "wavs" / "c001.wav", sampling_rate=22050)
    pitch = estimate_pitch(wave.numpy(), AudioConfig(), n_frames=made["mels"]["c001"].size(1))
    expected = average_pitch(pitch, made["durations"]["c001"].numpy())
    np.testing.assert_allclose(load_tensor(corpus / "pitch_char_hz" / "c001.pt").numpy(), expected, rtol=1e-6)
    line = "mels/c000.pt|durations/c000.pt|pitch_char/c000.pt|Hello number c000."
    assert (corpus / "train.meta").read_text().splitlines()[0] == line
    table = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.startswith("  ")}
    assert all(table[f"{folder}/"] == [str(N_CLIPS), "0"] for folder in FOLDERS)


def test_a_teacher_with_averaged_weights_reads_with_them_unless_told_otherwise(
    corpus: Path, extract: Extract, network: Tacotron2, tmp_path: Path
):
    averaged = new_network(seed=1)
    path = save(tmp_path / "averaged.pt", network, ema={"tacotron2": averaged.state_dict()})
    for options, teacher in (((), averaged), (("--no-ema",), network)):
        assert extract("--extract-attentions", *options, model=path)[0] == 0
        truth = alone(teacher, corpus)
        for name, attention in features(corpus)["attentions"].items():
            torch.testing.assert_close(attention, truth[name].alignments[0], rtol=0, atol=2e-5)
        status, _, err = extract("--extract-attentions", "--ema" if options else "--no-ema", model=path)
        assert status == 1 and "other settings: ema: " in err
        shutil.rmtree(corpus / "attentions")
    status, _, err = extract("--extract-attentions", "--ema")
    assert status == 1 and "no EMA weights; leave out --ema" in err


def test_fastpitch_trains_on_the_durations(corpus: Path, extract: Extract, tmp_path: Path):
    assert extract("--extract-mels", "--extract-durations", "--extract-pitch-char")[0] == 0
    for name in ("train.txt", "val.txt"):
        (corpus / name).write_text((corpus / "train.meta").read_text())
    assert train.main(train_options(corpus, tmp_path / "run", "--epochs", "1", "-bs", "3")) == 0
    records = [record["data"] for record in read_log(tmp_path / "run" / "nvlog.json") if record["type"] == "LOG"]
    losses = [data["train_loss"] for data in records if "train_loss" in data]
    assert losses and np.isfinite(losses).all()
    assert load_checkpoint(tmp_path / "run" / "FastPitch_checkpoint_1.pt").training["iteration"] == 2


def test_what_is_whole_is_kept_and_the_rest_is_made_again(corpus: Path, extract: Extract):
    assert extract(*ALL)[0] == 0
    wanted = features(corpus)
    (corpus / "durations" / "c001.pt").unlink()
    path = corpus / "attentions" / "c002.pt"
    path.write_bytes(path.read_bytes()[:-50])
    torch.save(torch.ones_like(wanted["durations"]["c003"]), corpus / "durations" / "c003.pt")  # another sum
    untouched = corpus / "mels_teacher" / "c002.pt"
    before = untouched.stat().st_mtime_ns
    status, out, _ = extract(*ALL, "--resume")
    assert status == 0 and untouched.stat().st_mtime_ns == before
    same(features(corpus), wanted)
    table = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.startswith("  ")}
    assert table["durations/"] == ["2", "4"] and table["attentions/"] == ["1", "5"]
    assert (
        table["mels_teacher/"] == ["0", "6"] and table["mels/"] == ["0", "6"] and table["pitch_char_hz/"] == ["2", "4"]
    )


def test_bad_clips_are_refused_by_name_and_the_others_made(corpus: Path, extract: Extract, network: Tacotron2):
    assert extract("--extract-durations")[0] == 0
    wanted = features(corpus)["durations"]
    with (corpus / "train.txt").open("a") as file:
        file.write("wavs/absent.wav|Nobody.\n")
        file.write(add_clip(corpus, "strange", 0.5).replace("Hello", "Caf#"))
        file.write(add_clip(corpus, "mute", 0.5).partition("|")[0] + "|,\n")
    (corpus / "wavs" / "c002.wav").write_bytes(b"RIFF")
    status, out, _ = extract("--extract-durations", "--unknown-symbols", "error")
    assert status == 1 and "refused: 3 of 9 utterances" in out
    for name, words in {
        f"{corpus}/train.txt:7": "wavs/absent.wav",
        f"{corpus}/train.txt:8": "'#' (U+0023) not in symbol set english_basic",
        f"{corpus}/train.txt:3": "wavs/c002.wav",
    }.items():
        assert any(name in line and words in line for line in out.splitlines()), out
    made = features(corpus)["durations"]
    assert made.keys() == {*wanted, "mute"} and torch.equal(made["c003"], wanted["c003"])
    assert len((corpus / "train.meta").read_text().splitlines()) == 6

    status, out, err = extract("--extract-durations")
    assert status == 1 and "refused: 2 of 9 utterances" in out
    assert "warning: 1 character that this voice has no symbol for was left out: '#' (1)" in err
    tokens = TextFrontEnd(TextConfig()).encode("Caf number strange.")
    assert len(load_tensor(corpus / "durations" / "strange.pt")) == len(tokens)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--extract-durations --extract-durs-from-textgrids", "--extract-durs-from-textgrids: give one of them"),
        ("--extract-attentions --extract-durs-from-textgrids --trim-silence 0", "and no --extract-attentions"),
        ("--extract-durations --n-mels 40", "n_mels: 40 (options), 80 ("),
        ("--extract-durations --peak 0.9", "peak: 0.9 (options), None ("),
    ],
)
def test_options_that_do_not_fit_end_in_one_line(corpus: Path, extract: Extract, options: str, message: str):
    status, out, err = extract(*options.split())
    assert status == 2 and out == "" and message in err and "\n" not in err
    assert features(corpus) == {}


def test_the_checkpoint_says_what_its_mels_are(corpus: Path, extract: Extract, tmp_path: Path, network: Tacotron2):
    audio = AudioConfig(win_length=800, peak=0.9)
    model = save(tmp_path / "other.pt", network, audio=audio)
    assert extract("--extract-mels", "--extract-durations", "--filter-length", "1024", model=model)[0] == 0
    assert (
        read_json(corpus / "durations" / "audio.json") == to_plain(audio) == read_json(corpus / "mels" / "audio.json")
    )
    published = save(tmp_path / "published.pt", network, assumed=("peak",))
    (corpus / "mels").rename(tmp_path / "mels")
    (corpus / "durations").rename(tmp_path / "durations")
    assert extract("--extract-durations", "--peak", "0.5", model=published)[0] == 0
    assert read_json(corpus / "durations" / "audio.json")["peak"] == 0.5


def test_features_of_two_models_are_never_mixed(corpus: Path, extract: Extract, tmp_path: Path):
    assert extract("--extract-durations")[0] == 0
    before = features(corpus)
    other = save(tmp_path / "other.pt", new_network(1))
    grids = ("--extract-durs-from-textgrids", "--extract-attentions")
    others = extract("--extract-durations", "--resume", model=other), extract(*grids)
    for (status, _, err), words in zip(others, ("sha256: '", "model: 'Tacotron2' (there), None (options)")):
        assert status == 1 and f"durations: was made with other settings: {words}" in err
    same(features(corpus), before)
    (corpus / "durations").rename(corpus / "old")
    assert extract(*grids)[0] == 0
    assert (corpus / "train.meta").read_text().startswith("durations/c000.pt|sil HH AH0 L OW1 sil\n")
    status, _, err = extract("--extract-durations")
    assert (
        status == 1 and "durations: was made with other settings: model: None (there), 'Tacotron2' (options); " in err
    )
