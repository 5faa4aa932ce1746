"""What only shows on a GPU: run with `bash scripts/test.sh -m gpu`."""

from pathlib import Path

import pytest
import torch
from test_vocoder import alone, argv, ready, vocoder_checkpoint
from tiny import make_corpus, train_options
from tiny_vocoder import (
    ALIGNED,
    TINY,
    cut,
    hifigan_objective,
    make_recordings,
    segments,
    train_options as vocoder_options,
    vocoder_engine,
)
from torch import Tensor

import inference
import train
from common.audio.wav import load_wav
from common.checkpoints.reading import load_checkpoint
from common.config import AudioConfig
from common.distributed import Ranks
from common.logger import read_log
from common.synthesis.cuda_graphs import GraphRecorder
from common.synthesis.utterances import Controls
from common.torch_file import save_tensor
from fastpitch.config import ModelConfig
from fastpitch.model import build_networks
from hifigan.model import build_networks as build_vocoder

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.usefixtures("full_precision"),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no CUDA device"),
]
SMALL = ModelConfig(
    symbols_embedding_dim=32,
    in_fft_output_size=32,
    out_fft_output_size=32,
    in_fft_n_layers=2,
    out_fft_n_layers=2,
    in_fft_conv1d_filter_size=64,
    out_fft_conv1d_filter_size=64,
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_corpus(tmp_path_factory.mktemp("gpu") / "data")


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_recordings(tmp_path_factory.mktemp("gpu_recordings") / "data")


def losses(output: Path, name: str = "train_loss") -> list[float]:
    records = [record for record in read_log(output / "nvlog.json") if record["type"] == "LOG"]
    return [record["data"][name] for record in records if name in record["data"]]


def test_the_padded_network_on_the_gpu_equals_the_packed_one_on_the_cpu():
    torch.manual_seed(0)
    network = build_networks(SMALL, AudioConfig(), None)["fastpitch"].eval()
    lengths = torch.tensor([9, 23, 1, 16])
    tokens = torch.randint(1, 148, (4, 23)) * (torch.arange(23) < lengths.unsqueeze(1))
    durations = torch.randint(0, 5, (4, 23)) * (torch.arange(23) < lengths.unsqueeze(1))
    durations[:, 0] += 1
    with torch.no_grad():
        ours = network.infer(tokens, lengths, Controls(durations=durations))
        device = torch.device("cuda")
        network.to(device)
        theirs = network.infer(tokens.to(device), lengths.to(device), Controls(durations=durations.to(device)))
    assert torch.equal(ours.lengths, theirs.lengths.cpu())
    torch.testing.assert_close(theirs.mel.cpu(), ours.mel, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(theirs.pitch.cpu(), ours.pitch, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("precision", [(), ("--amp", "--amp-dtype", "bfloat16"), ("--amp", "--amp-dtype", "float16")])
def test_training_on_the_gpu_learns_in_every_precision(precision: tuple[str, ...], corpus: Path, tmp_path: Path):
    options = ("--epochs", "8", "--warmup-steps", "15", "--validation-interval", "8", "--cuda", "--num-workers", "0")
    assert train.main(train_options(corpus, tmp_path, *options, *precision)) == 0
    values = losses(tmp_path)
    assert values[-1] < 0.6 * values[0]


def test_a_run_on_the_gpu_resumes_from_its_checkpoint(corpus: Path, tmp_path: Path):
    options = ("--validation-interval", "9", "--cuda", "--num-workers", "0", "--ema-decay", "0.9")
    assert train.main(train_options(corpus, tmp_path / "whole", "--epochs", "4", *options)) == 0
    assert train.main(train_options(corpus, tmp_path / "parts", "--epochs", "2", *options)) == 0
    assert train.main(train_options(corpus, tmp_path / "parts", "--epochs", "4", *options, "--resume")) == 0
    assert losses(tmp_path / "parts") == pytest.approx(losses(tmp_path / "whole"), rel=1e-3)


def test_compiled_training_equals_eager_training(corpus: Path, tmp_path: Path):
    options = ("--epochs", "2", "--validation-interval", "9", "--cuda", "--num-workers", "0")
    no_dropout = [
        word
        for name in ("in-fft-dropout", "in-fft-dropatt", "out-fft-dropout", "out-fft-dropatt")
        for word in (f"--p-{name}", "0")
    ]
    no_dropout += ["--p-dur-predictor-dropout", "0", "--p-pitch-predictor-dropout", "0"]
    train.main(train_options(corpus, tmp_path / "eager", *options, *no_dropout))
    train.main(train_options(corpus, tmp_path / "compiled", *options, *no_dropout, "--compile"))
    assert losses(tmp_path / "compiled") == pytest.approx(losses(tmp_path / "eager"), rel=1e-3)


@pytest.mark.parametrize("extra", [(), ("--amp",), ("--torchscript",), ("--cuda-graphs",)])
def test_speech_made_on_the_gpu_is_that_of_the_cpu(extra: tuple[str, ...], corpus: Path, tmp_path: Path):
    train.main(train_options(corpus, tmp_path, "--epochs", "2", "--validation-interval", "9"))
    checkpoint = tmp_path / "FastPitch_checkpoint_2.pt"
    assert load_checkpoint(checkpoint).model == "FastPitch"
    (tmp_path / "list.txt").write_text("a.wav|a small house\nb.wav|nobody came, and nobody called.\n")
    common = ["-i", str(tmp_path / "list.txt"), "--fastpitch", str(checkpoint), "--save-mels", "--no-audio"]
    inference.main([*common, "-o", str(tmp_path / "cpu")])
    inference.main([*common, "-o", str(tmp_path / "gpu"), "--cuda", "--no-tf32", *extra])
    for name in ("a", "b"):
        mels = [torch.load(tmp_path / device / "mels" / f"{name}.pt", weights_only=True) for device in ("cpu", "gpu")]
        if "--amp" in extra:
            assert abs(mels[0].shape[1] - mels[1].shape[1]) <= 2  # a rounded duration may fall the other way
        else:
            torch.testing.assert_close(mels[1], mels[0], atol=2e-3, rtol=1e-3)


@pytest.mark.parametrize("concat_fwd", [False, True])
def test_a_vocoders_updates_on_the_gpu_equal_those_on_the_cpu(concat_fwd: bool):
    def steps(device: torch.device) -> list[dict[str, float]]:
        torch.manual_seed(0)
        networks = {name: network.to(device) for name, network in build_vocoder(TINY, ALIGNED, None).items()}
        objective = hifigan_objective(concat_fwd=concat_fwd)
        engine = vocoder_engine(networks, objective, ranks=Ranks(device=device))
        batches = [[batch.to(device) for batch in cut(segments(8, seed=seed), (4, 4))] for seed in range(3)]
        return [engine.step(batch, epoch=1).terms for batch in batches]

    for first, second in zip(steps(torch.device("cpu")), steps(torch.device("cuda"))):
        assert first == pytest.approx(second, rel=1e-3)


_ON_GPU = ("--cuda", "--num-workers", "2", "--no-tf32")


@pytest.mark.parametrize(
    "precision",
    [
        (),
        ("--amp", "--amp-dtype", "bfloat16"),
        ("--amp", "--amp-dtype", "float16"),
        ("--amp", "--amp-dtype", "bfloat16", "--no-amp-grouped-conv"),
        ("--compile",),
    ],
)
def test_a_vocoder_trains_on_the_gpu_in_every_precision(precision: tuple[str, ...], recordings: Path, tmp_path: Path):
    options = ("--epochs", "12", "-lr", "3e-3", "--validation-interval", "12", *_ON_GPU)
    assert train.main(vocoder_options(recordings, tmp_path, *options, *precision)) == 0
    mel = losses(tmp_path, "train_mel_loss")
    assert sum(mel[-4:]) < 0.7 * sum(mel[:4])
    assert losses(tmp_path, "val_mel_loss")[0] < 0.7 * mel[0]


LENGTHS = (70, 12, 100, 64, 1, 100)


def mels() -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(8, n, generator=generator) - 4 for n in LENGTHS]


@pytest.mark.parametrize(
    ("options", "tolerance"),
    [
        ((), 1e-3),
        (("--cuda-graphs",), 1e-3),
        (("--cuda-graphs", "--amp"), 2e-2),
        (("--amp",), 2e-2),
        (("--torchscript",), 1e-3),
        (("--compile",), 1e-3),
        (("--compile", "--cuda-graphs"), 1e-3),
    ],
)
@pytest.mark.parametrize("batch_size", ["1", "4"])
def test_sound_made_on_the_gpu_is_that_of_the_cpu(tmp_path: Path, capsys, options, tolerance, batch_size):
    lines = ["mel\toutput"]
    for place, mel in enumerate(mels()):
        save_tensor(tmp_path / f"{place}.pt", mel)
        lines.append(f"{place}.pt\t{place}")
    (tmp_path / "list.tsv").write_text("\n".join(lines) + "\n")
    checkpoint = vocoder_checkpoint(tmp_path / "v.pt")
    inference.main(argv(tmp_path, "--hifigan", checkpoint, "--cuda", "--no-tf32", "-bs", batch_size, *options))
    for place, mel in enumerate(mels()):
        wave = load_wav(tmp_path / "out" / f"{place}.wav", sampling_rate=None)
        torch.testing.assert_close(wave, alone(ready(0), mel), rtol=0, atol=tolerance)
    assert "warning" not in capsys.readouterr().err


def test_a_recording_that_fails_leaves_stream_and_random_numbers_as_they_were():
    device, stream = torch.device("cuda"), torch.cuda.current_stream()

    def wait() -> Tensor:
        return torch.ones(3, device=device) * torch.ones(3, device=device).sum().item()

    torch.cuda.manual_seed(1)
    expected = torch.rand(3, device=device)
    torch.cuda.manual_seed(1)
    with pytest.raises(RuntimeError):
        GraphRecorder("x").capture(wait)
    assert torch.cuda.current_stream() == stream
    assert torch.equal(torch.rand(3, device=device), expected)
    replay, drawn = GraphRecorder("x").capture(lambda: torch.rand(3, device=device))
    torch.cuda.manual_seed(1)
    replay()
    assert torch.equal(drawn, expected)
