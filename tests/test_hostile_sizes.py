"""Files that announce more than they hold, or grow as they are read, end in one clear line and little memory."""

import resource
import struct
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from tiny import make_corpus, train_options
from tiny_voice import save_voice

import train
from common.audio import check_wav, load_wav
from common.checkpoints import load_checkpoint, load_networks, open_checkpoint, save_checkpoint
from common.config import AudioConfig
from common.errors import InputError, OptionError
from common.extraction.textgrid import read_alignment
from common.torch_file import load_tensor, read_torch_file, tensor_shape

CPU = torch.device("cpu")
HUGE = struct.pack("<I", 0x7FFFFFFF)


def assert_refused(read, path: Path, *, match: str | None = None, kind: type = InputError) -> None:
    """``read(path)`` raises one line that names the file, in little memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(kind, match=match) as caught:
        read(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:") and "\n" not in message and len(message) < 600, message
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kB


@pytest.mark.parametrize("read", [load_tensor, tensor_shape])
def test_a_feature_of_many_numbers_is_refused_before_they_are_read(tmp_path: Path, read):
    torch.save(torch.zeros(9), tmp_path / "a.pt")
    with (tmp_path / "a.pt").open("r+b") as file:
        file.truncate(600_000_000)
    assert_refused(read, tmp_path / "a.pt", match="600000000 bytes, expected a tensor of at most 536870912")


def test_tensors_that_somebody_compressed_are_read_as_they_were(tmp_path: Path):
    torch.save({"a": torch.arange(100.0)}, tmp_path / "a.pt")
    with (
        zipfile.ZipFile(tmp_path / "a.pt") as source,
        zipfile.ZipFile(tmp_path / "b.pt", "w", zipfile.ZIP_DEFLATED) as target,
    ):
        for name in source.namelist():
            target.writestr(name, source.read(name))
    for mapped in (True, False):
        found = read_torch_file(tmp_path / "b.pt", wanted="a dict", mapped=mapped)
        assert torch.equal(found["a"], torch.arange(100.0))


def test_what_real_files_hold_is_read_as_pytorch_reads_it(tmp_path: Path):
    base = torch.arange(24.0)
    dtypes = [torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.bool, torch.uint8, torch.complex64]
    saved = {
        "dtypes": [torch.ones(3, dtype=dtype) for dtype in dtypes],
        "shared": (base, base[3:15].view(3, 4).t(), base[::2]),
        "empty": [torch.empty(0), torch.empty(2, 0, 3), torch.tensor(3.5)],
        "plain": [
            None,
            True,
            -1,
            1 << 40,
            2.5,
            "text\u00e4\U0001f600",
            b"bytes",
            {1: (1, 2), "a": set("ab")},
            (),
            (1,) * 7,
        ],
        "network": torch.nn.Sequential(torch.nn.BatchNorm1d(2), torch.nn.Linear(2, 3)).state_dict(),
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "others": [torch.float32, torch.Size([1, 2])],
    }
    for protocol, zipped in ((2, True), (2, False), (4, True)):
        torch.save(saved, tmp_path / "a.pt", _use_new_zipfile_serialization=zipped, pickle_protocol=protocol)
        for mapped in (True, False):
            found = read_torch_file(tmp_path / "a.pt", wanted="a dict", mapped=mapped)
            torch.testing.assert_close(found["shared"], saved["shared"], rtol=0, atol=0)
            assert found["shared"][0].untyped_storage().data_ptr() == found["shared"][2].untyped_storage().data_ptr()
            assert all(
                map(torch.equal, map(torch.Tensor.double, found["empty"]), map(torch.Tensor.double, saved["empty"]))
            )
            assert [one.dtype for one in found["dtypes"]] == [one.dtype for one in saved["dtypes"]]
            assert all((one.to(torch.complex64) == 1).all() for one in found["dtypes"])
            assert found["plain"] == saved["plain"] and found["others"] == saved["others"]
            assert torch.equal(found["parameter"], saved["parameter"].detach())
            assert found["network"]._metadata == saved["network"]._metadata
            assert all(torch.equal(found["network"][key], value) for key, value in saved["network"].items())


SIZES = {
    "layers": {"in_fft_n_layers": 10**7},
    "predictors": {"dur_predictor_n_layers": 10**19},
    "filters": {"out_fft_conv1d_filter_size": 10**10},
    "a kernel": {"in_fft_conv1d_kernel_size": 10**10 + 1},
    "more than can be counted": {"in_fft_conv1d_filter_size": 10**18, "in_fft_conv1d_kernel_size": 10**9 + 1},
    "speakers": {"n_speakers": 10**9},
    "a symbol that is none": {"padding_idx": 10**7},
}


@pytest.mark.parametrize("name", SIZES)
def test_a_configuration_of_more_than_the_weights_is_refused_before_it_is_built(tmp_path: Path, name: str):
    path = save_voice(tmp_path / "a.pt")
    checkpoint = load_checkpoint(path)
    save_checkpoint(path, replace(checkpoint, config=checkpoint.config | SIZES[name]))
    assert_refused(lambda one: load_networks(load_checkpoint(one), device=CPU, where=str(one)), path)


def test_training_refuses_a_network_of_more_parameters_than_it_may_have(tmp_path: Path):
    corpus = make_corpus(tmp_path / "data", count=2, val=1)
    huge = "--out-fft-conv1d-filter-size 1000000 --out-fft-conv1d-kernel-size 99"
    for extra, limit in ((huge, 5 * 10**8), ("--max-parameters 1000", 1000)):
        with pytest.raises(OptionError, match=f"networks of more than {limit} parameters; .*raise --max-parameters"):
            train.main(train_options(corpus, tmp_path / "out", *extra.split()))
    assert not (tmp_path / "out").exists()


def wav(
    path: Path, *, rate: int = 22050, channels: int = 1, size: int = 200, chunks: bytes = b"", head: bytes = b"RIFF"
) -> Path:
    """A WAV file of 100 samples whose header says something else."""
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, channels, rate, rate * 2 % (1 << 32), channels * 2 % 65536, 16)
    path.write_bytes(head + b"\0\1\0\0WAVE" + chunks + form + b"data" + struct.pack("<I", size) + bytes(200))
    return path


@pytest.mark.parametrize(
    "header",
    [
        {"size": 0xFFFFFFF0},
        {"channels": 65535},
        {"channels": 0},
        {"rate": 0},
        {"rate": 1},
        {"rate": 4_000_000_000},
        {"chunks": b"junk\0\0\0\0" * 200_000},
        {"chunks": b"junk" + HUGE},
        {"chunks": b"ds64" + HUGE, "head": b"RF64", "size": 0xFFFFFFFF},
        {"chunks": b"ds64\x1c\0\0\0" + b"\xff" * 28, "head": b"RF64", "size": 0xFFFFFFFF},
    ],
    ids=str,
)
def test_a_header_of_more_sound_than_the_file_is_refused(tmp_path: Path, header: dict):
    path = wav(tmp_path / "a.wav", **header)
    assert_refused(lambda one: load_wav(one, sampling_rate=None), path)
    assert_refused(lambda one: check_wav(one, sampling_rate=None), path)


def test_hours_of_silence_in_a_small_flac_are_refused(tmp_path: Path):
    with soundfile.SoundFile(tmp_path / "a.flac", "w", 1000, 1, "PCM_16", format="FLAC") as file:
        for _ in range(20):
            file.write(np.zeros(1 << 20, dtype=np.int16))
    data = bytearray((tmp_path / "a.flac").read_bytes())
    assert len(data) < 1 << 18
    samples = int.from_bytes(data[18:26], "big")  # of the header: rate, channels, depth, and 36 bits of a length
    for announced in (1 << 28, (1 << 36) - 1):
        data[18:26] = ((samples >> 36 << 36) | announced).to_bytes(8, "big")
        (tmp_path / "a.flac").write_bytes(data)
        assert_refused(lambda one: load_wav(one, sampling_rate=None), tmp_path / "a.flac")


@pytest.mark.parametrize("time", ["inf", "nan"])
def test_times_of_a_textgrid_without_end_are_refused(tmp_path: Path, time: str):
    head = ['File type = "ooTextFile"', 'Object class = "TextGrid"', 0, 1, "<exists>", 1]
    path = tmp_path / "a.TextGrid"
    path.write_text("\n".join(map(str, [*head, '"IntervalTier"', '"phones"', 0, 1, 1, 0, time, '"a"'])))
    assert_refused(lambda one: read_alignment(one, AudioConfig()), path)


def test_an_onnx_file_that_names_other_files_is_refused_without_opening_them(tmp_path: Path):
    onnx = pytest.importorskip("onnx")
    weights = onnx.helper.make_tensor("location", onnx.TensorProto.FLOAT, [1], [1.0])
    output = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])
    node = onnx.helper.make_node("Identity", ["location"], ["y"])
    graph = onnx.helper.make_graph([node], "g", [], [output], [weights])
    model = onnx.helper.make_model(graph, ir_version=8, opset_imports=[onnx.helper.make_opsetid("", 17)])
    path = tmp_path / "a.onnx"
    path.write_bytes(model.SerializeToString())
    assert_refused(load_model, path, match="scripts/export_model.sh did not write")
    (tensor,) = model.graph.initializer
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/dev/zero")
    tensor.ClearField("float_data")
    path.write_bytes(model.SerializeToString())
    assert_refused(load_model, path, match="names other files for its weights, which are not opened")


def load_model(path: Path) -> None:
    open_checkpoint(path, role="vocoder")
