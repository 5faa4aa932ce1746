"""Tacotron 2 as the teacher of extract_mels.py: durations, attention, mels, and FastPitch trained on them."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from corpus import add_clip, make_corpus
from test_failing_writes import ended
from tiny_checkpoint import save_networks
from tiny_tacotron2 import TINY, tiny_network
from torch import Tensor

import extract_mels
from common.audio.pitch import average_pitch, estimate_pitch
from common.audio.wav import load_wav
from common.config import AudioConfig
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


@pytest.fixture(scope="module")
def network() -> Tacotron2:
    """Random weights whose attention differs between symbols."""
    network = tiny_network(**OPTIONS)
    with torch.no_grad():
        network.embedding.weight.mul_(20)
        for parameter in network.decoder.parameters():
            parameter.mul_(2)
    return network


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory, network: Tacotron2) -> Path:
    path, config = tmp_path_factory.mktemp("tacotron2") / "Tacotron2_checkpoint_1.pt", replace(TINY, **OPTIONS)
    return save_networks(path, "Tacotron2", config, {"tacotron2": network}, audio=AudioConfig(), text=TextConfig())


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return make_corpus(tmp_path / "corpus", N_CLIPS, seconds=0.6)


Extract = Callable[..., tuple[int, str, str]]


@pytest.fixture
def extract(corpus: Path, checkpoint: Path, capsys: pytest.CaptureFixture) -> Extract:
    """Run the command in this process: (exit status, stdout, stderr without progress)."""

    def call(*options: str | Path) -> tuple[int, str, str]:
        words = ["-d", corpus, "--wav-text-filelist", corpus / "train.txt", "--num-workers", 1, *options]
        words += ["--output-meta-file", corpus / "train.meta", "--tacotron2-checkpoint", checkpoint]
        status = ended(extract_mels.main, *words)
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        lines = [line for line in err.splitlines() if line.startswith(("error", "warning", "interrupted"))]
        return status, out, "\n".join(lines)

    return call


def features(folder: Path) -> dict[str, dict[str, Tensor]]:
    """Folder -> clip -> its tensor."""
    return {
        name: {path.stem: load_tensor(path) for path in sorted((folder / name).glob("*.pt"))}
        for name in FOLDERS
        if (folder / name).is_dir()
    }


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


def test_bad_clips_are_refused_by_name_and_the_others_made(corpus: Path, extract: Extract):
    with (corpus / "train.txt").open("a") as file:
        file.write("wavs/absent.wav|Nobody.\n")
        file.write(add_clip(corpus, "strange", 0.5).replace("Hello", "Caf#"))
        file.write(add_clip(corpus, "mute", 0.5).partition("|")[0] + "|,\n")
    (corpus / "wavs" / "c002.wav").write_bytes(b"RIFF")
    status, out, _ = extract("--extract-durations", "--unknown-symbols", "error")
    assert status == 1 and "refused: 3 of 9 utterances" in out
    for place, words in {":7": "wavs/absent.wav", ":8": "'#' (U+0023) not in", ":3": "wavs/c002.wav"}.items():
        assert any(f"{corpus}/train.txt{place}" in line and words in line for line in out.splitlines()), out
    assert features(corpus)["durations"].keys() == {"c000", "c001", "c003", "c004", "c005", "mute"}
    assert len((corpus / "train.meta").read_text().splitlines()) == 6
    status, out, err = extract("--extract-durations")
    assert status == 1 and "refused: 2 of 9 utterances" in out
    assert "warning: 1 character that this voice has no symbol for was left out: '#' (1)" in err
    tokens = TextFrontEnd(TextConfig()).encode("Caf number strange.")
    assert len(load_tensor(corpus / "durations" / "strange.pt")) == len(tokens)
