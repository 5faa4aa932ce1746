"""Files that announce more than they hold, or grow as they are read, end in one clear line and little memory."""

import pickle
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
from common.checkpoints import (
    load_checkpoint,
    load_networks,
    load_weights,
    open_checkpoint,
    save_checkpoint,
    strip_checkpoint,
)
from common.config import AudioConfig
from common.errors import CheckpointError, InputError, OptionError
from common.extraction.textgrid import read_alignment
from common.files import load_tensor, tensor_shape
from common.formats.torch_file import read_torch_file

CPU = torch.device("cpu")
HUGE = struct.pack("<I", 0x7FFFFFFF)
TENSOR = b"ctorch._utils\n_rebuild_tensor_v2\n"
STORAGE = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x01tQ"  # of 1 number


def integer(number: int) -> bytes:
    data = number.to_bytes(9, "little", signed=True)
    return b"\x8a\x09" + data


def tensor(size: tuple[int, ...], stride: tuple[int, ...], *, offset: int = 0, storage: bytes = STORAGE) -> bytes:
    """A pickle's piece that makes a tensor."""
    shape = b"".join(b"(" + b"".join(map(integer, numbers)) + b"t" for numbers in (size, stride))
    return TENSOR + b"(" + storage + integer(offset) + shape + b"\x89)tR"


def archive(path: Path, program: bytes, *, compression: int = zipfile.ZIP_STORED, storage: bytes = b"\0" * 4) -> Path:
    with zipfile.ZipFile(path, "w", compression) as file:
        file.writestr("a/data.pkl", program)
        file.writestr("a/data/0", storage)
        file.writestr("a/version", "3\n")
    return path


def legacy(path: Path, program: bytes, *, keys: bytes = b"](X\x01\x00\x00\x000e.", data: bytes = b"") -> Path:
    start = b"".join(pickle.dumps(part, 2) for part in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}))
    path.write_bytes(start + program + b"\x80\x02" + keys + data)
    return path


DOUBLED = b"](K\x01K\x02eq\x00" + b"".join(b"](h%ch%ceq%c" % (n, n, n + 1) for n in range(60))
PROGRAMS = {
    "bytearray": b"cbuiltins\nbytearray\n" + integer(8 << 30) + b"\x85R",
    "bytearray of an operation": b"\x96" + struct.pack("<Q", 8 << 30),
    "text": b"X" + HUGE + b"a",
    "long text": b"\x8d" + struct.pack("<Q", 8 << 30),
    "bytes": b"B" + HUGE,
    "a place of the memo": b"K\x01r" + HUGE,
    "an integer": b"\x8b" + HUGE + b"1",
    "a frame": b"\x95" + struct.pack("<Q", 8 << 30),
    "lists that double": DOUBLED,
    "tuples that double, as a key": b"}" + b")q\x00" + b"h\x00h\x00\x86q\x00" * 60 + b"K\x01s",
    "tuples in tuples, as a key": b"}" + b")" + b"\x85" * 200_000 + b"K\x01s",
    "a list in itself": b"]q\x00h\x00a",
    "lists in lists": b"]" * 100_000 + b"a" * 99_999,
    "dicts in dicts": b"}" + b"K\x01}" * 1000 + b"s" * 1000,
    "many lists": b"](" + b"]" * 1_000_000 + b"e",
    "copies of a list": b"](" + b"N" * 100_000 + b"eq\x00(" + b"ctorch\nSize\nh\x00\x85R" * 5000 + b"l",
    "a duplicate": b"]22222",
    "a device of lists": DOUBLED + b"ctorch\ndevice\nh<\x85R",
    "an expanded tensor": tensor((80, 200_000_000), (0, 0)),
    "a tensor beyond its storage": tensor((2,), (1,)),
    "a tensor before its storage": tensor((1,), (1,), offset=-1),
    "negative strides": tensor((1,), (-1,)),
    "a shape of negative sizes": tensor((-1, -1), (1, 1)),
    "a tensor of 10,000 dimensions": tensor((1,) * 10_000, (1,) * 10_000),
    "more numbers than bytes": tensor((1 << 30,), (1,), storage=STORAGE.replace(b"K\x01tQ", integer(1 << 30) + b"tQ")),
    "a negative number of numbers": tensor((1,), (1,), storage=STORAGE.replace(b"K\x01tQ", integer(-1) + b"tQ")),
    "an expanded tensor of halves": tensor((9, 9), (0, 0), storage=STORAGE.replace(b"Float", b"Half")),
    "a long name": tensor((1,), (1,), storage=STORAGE.replace(b"\x01\0\0\x000", b"\0\0\1\0" + b"0" * 65536)),
    "a sparse tensor": b"ctorch._utils\n_rebuild_sparse_tensor\n)R",
}


CASES = [(archive, load_tensor, InputError), (legacy, load_checkpoint, CheckpointError)]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(("make", "read", "kind"), CASES, ids=["tensor", "checkpoint"])
def test_a_pickle_that_grows_is_one_clear_line(tmp_path: Path, make, read, kind: type, name: str):
    path = make(tmp_path / "a.pt", b"\x80\x02" + PROGRAMS[name] + b".")
    assert_refused(read, path, kind=kind)


def assert_refused(read, path: Path, *, match: str | None = None, kind: type = InputError) -> None:
    """``read(path)`` raises one line that names the file, in little memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(kind, match=match) as caught:
        read(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:") and "\n" not in message and len(message) < 600, message
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kB


def test_numbers_that_are_compressed_are_refused(tmp_path: Path):
    program = (
        b"\x80\x02" + tensor((1 << 24,), (1,), storage=STORAGE.replace(b"K\x01tQ", integer(1 << 24) + b"tQ")) + b"."
    )
    path = archive(tmp_path / "a.pt", program, storage=bytes(1 << 26), compression=zipfile.ZIP_DEFLATED)
    for read in (load_tensor, tensor_shape, load_checkpoint):
        assert_refused(read, path, match="is compressed, which torch.save does not; save it again")


def test_archives_with_numbers_of_64_bits_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    torch.save({"a": torch.arange(100.0), "b": torch.arange(9)}, tmp_path / "a.pt")
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 50)  # as if these were gigabytes
    with zipfile.ZipFile(tmp_path / "a.pt") as source, zipfile.ZipFile(tmp_path / "b.pt", "w") as target:
        for name in source.namelist():
            target.writestr(name, source.read(name))
    data = (tmp_path / "b.pt").read_bytes()
    (tmp_path / "b.pt").write_bytes(data[:-10] + b"\xff" * 8 + data[-2:])  # size and place of the directory
    for mapped in (True, False):
        found = read_torch_file(tmp_path / "b.pt", mapped=mapped)
        assert torch.equal(found["a"], torch.arange(100.0)) and torch.equal(found["b"], torch.arange(9))


def test_storages_that_lie_over_each_other_are_refused(tmp_path: Path):
    torch.save([torch.full((1000,), float(n)) for n in range(9)], tmp_path / "a.pt")
    data = bytearray((tmp_path / "a.pt").read_bytes())
    first = data.index(b"PK\x03\x04", data.index(b"a/data/0") - 40)
    storages = (
        data.index(b"PK\x03\x04", data.index(b"a/data/1") - 40),
        data.index(b"PK\x03\x04", data.index(b"a/version") - 40),
    )
    directory = data.rindex(b"a/data.pkl") - 46
    end, place = data.index(b"PK\x06\x06"), directory
    while place < end:
        (offset,) = struct.unpack_from("<I", data, place + 42)
        n_name, n_extra = struct.unpack_from("<2H", data, place + 28)
        later = offset >= storages[1]
        moved = first if storages[0] <= offset < storages[1] else offset - later * (storages[1] - storages[0])
        struct.pack_into("<I", data, place + 42, moved)
        place += 46 + n_name + n_extra
    cut = storages[1] - storages[0]
    struct.pack_into("<I", data, len(data) - 6, directory - cut)
    (tmp_path / "a.pt").write_bytes(data[: storages[0]] + data[storages[1] :])
    assert_refused(load_checkpoint, tmp_path / "a.pt", match="lie over each other")


@pytest.mark.parametrize("read", [load_tensor, tensor_shape])
def test_a_feature_of_many_numbers_is_refused_before_they_are_read(tmp_path: Path, read):
    count = 700_000_000
    storage = STORAGE.replace(b"K\x01tQ", integer(count) + b"tQ")
    for shape, match in (
        ((count,), r"shape \(700000000,\); expected .* 536870912 bytes"),
        ((80, 9), r"shape \(80, 9\)"),
    ):
        program = b"\x80\x02" + tensor(shape, (1,) * len(shape), storage=storage) + b"."
        path = legacy(tmp_path / "a.pt", program, data=struct.pack("<q", count))
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size + 4 * count)
        assert_refused(read, path, match=match)
    torch.save(torch.arange(9.0).view(3, 3)[1], tmp_path / "b.pt", _use_new_zipfile_serialization=False)
    assert tensor_shape(tmp_path / "b.pt") == (3,) and load_tensor(tmp_path / "b.pt").tolist() == [3.0, 4.0, 5.0]


def test_what_real_files_hold_is_read_as_pytorch_reads_it(tmp_path: Path):
    base = torch.arange(24.0)
    dtypes = [torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.bool, torch.uint8, torch.complex64]
    saved = {
        "dtypes": [torch.ones(3, dtype=dtype) for dtype in (*dtypes, torch.float8_e4m3fn, torch.uint16)],
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
            found = read_torch_file(tmp_path / "a.pt", mapped=mapped)
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


def strip_to_halves(path: Path) -> None:
    strip_checkpoint(load_checkpoint(path), dtype="float16", where=str(path))


def test_weights_that_a_file_only_repeats_are_not_copied(tmp_path: Path):
    path = save_voice(tmp_path / "a.pt")
    checkpoint = load_checkpoint(path)
    for shape, count, match in (
        ((80, 200_000_000), 1, "in a storage of 1 elements"),
        ((1 << 25,), 70, "tensors of many times the file's"),
        ((1 << 25,), 4, "repeats values for 134217724 of its weights"),
    ):
        state = {str(n): torch.zeros(1).expand(shape) for n in range(count)}
        save_checkpoint(path, replace(checkpoint, networks={"fastpitch": state}))
        assert_refused(strip_to_halves, path, match=match)
    half = torch.zeros(1 << 16, dtype=torch.float16)
    torch.save({"state_dict": {str(n): half for n in range(9)}}, path)
    assert_refused(load_checkpoint, path, match="tensors of many times the file's")
    network = torch.nn.Module()
    network.w = torch.nn.Parameter(torch.empty(1, 200_000_000, device="meta"))
    with pytest.raises(CheckpointError, match="repeats values"):
        load_weights({"a": network}, {"a": {"w": torch.zeros(1).expand(1, 200_000_000)}}, where="a.pt")


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
