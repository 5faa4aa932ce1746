"""What of a vocoder's inference only shows on a GPU: run with `bash scripts/test.sh -m gpu`."""

from pathlib import Path

import pytest
import torch
from test_vocoder import alone, argv, ready, vocoder_checkpoint
from torch import Tensor

import inference
from common.audio.wav import load_wav
from common.synthesis.cuda_graphs import GraphRecorder
from common.torch_file import save_tensor

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.usefixtures("full_precision"),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no CUDA device"),
]
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
