"""Exported files: TorchScript is written and not read; ONNX of strangers is one line."""

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import soundfile
import tiny_voice
import torch
from onnx import TensorProto, helper
from onnx_changes import node, with_output

import inference
from common.checkpoints import load_for_inference, open_checkpoint
from common.checkpoints.exported import ARCHIVE_ENTRY, METADATA_KEY
from common.config import TextConfig
from common.errors import CheckpointError, InputError
from scripts import export_model, inspect_checkpoint

CPU = torch.device("cpu")
PHONES = TextConfig(input_type="pf", symbol_set="", cleaners=(), speakers=("ann", "bob"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A voice and a vocoder in ONNX, and a list of a mel."""
    made = tmp_path_factory.mktemp("exported")
    tiny_voice.save_voice(made / "voice.pt", model=tiny_voice.with_symbols(len(tiny_voice.symbols_of(tiny_voice.TEXT))))
    tiny_voice.save_vocoder(made / "vocoder.pt")
    for name in ("voice", "vocoder"):
        export_model.main([str(made / f"{name}.pt")])
    torch.save(torch.randn(16, 20, generator=torch.Generator().manual_seed(1)) - 5, made / "a.pt")
    (made / "list.tsv").write_text("output\tmel\na.wav\ta.pt\n")
    return made


def vocode(folder: Path, vocoder: Path, output: Path) -> np.ndarray:
    """The sound that a vocoder makes of the list's mel."""
    words = ["-i", str(folder / "list.tsv"), "--dataset-path", str(folder), "--hifigan", str(vocoder)]
    assert inference.main([*words, "-o", str(output)]) == 0
    return soundfile.read(output / "a.wav")[0]


def test_a_torchscript_file_is_written_and_not_read(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    export_model.main([str(folder / "vocoder.pt"), "--format", "torchscript", "-o", str(tmp_path / "a.pt")])
    extra = {ARCHIVE_ENTRY: ""}
    torch.jit.load(tmp_path / "a.pt", _extra_files=extra)
    assert json.loads(extra[ARCHIVE_ENTRY])["model"] == "HiFi-GAN"
    monkeypatch.setattr(torch.jit, "load", lambda *_, **__: pytest.fail("loaded"))
    line = r"a\.pt: TorchScript files are written, not read; give the checkpoint that it was made of$"
    with pytest.raises(CheckpointError, match=line):
        vocode(folder, tmp_path / "a.pt", tmp_path / "out")
    for command in (inspect_checkpoint.main, export_model.main):
        with pytest.raises(CheckpointError, match=line):
            command([str(tmp_path / "a.pt")])


def test_a_graph_that_cannot_be_run_is_one_line(folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture):
    data = with_output(folder / "vocoder.onnx", "wave", node("Reshape", "old", "a"), a=[7, -1])
    (tmp_path / "a.onnx").write_bytes(data)
    with pytest.raises(CheckpointError, match=r"a\.onnx: onnxruntime cannot run it"):
        vocode(folder, tmp_path / "a.onnx", tmp_path / "out")
    assert capfd.readouterr().err == ""  # onnxruntime logs nothing beside it


@pytest.mark.skipif(
    tuple(map(int, onnxruntime.__version__.split(".")[:2])) < (1, 24), reason="older ones open files anywhere"
)
def test_onnx_of_other_programs_opens_no_file_outside_its_folder(tmp_path: Path):
    weights = helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0])
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    graph = helper.make_graph([helper.make_node("Identity", ["w"], ["y"])], "g", [], [output], [weights])
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    path = tmp_path / "a.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(CheckpointError, match=r"a\.onnx: not written by scripts/export_model\.sh"):
        open_checkpoint(path)
    (tensor,) = model.graph.initializer
    tensor.data_location = TensorProto.EXTERNAL
    tensor.ClearField("float_data")
    for place in ("/dev/zero", "../x"):
        del tensor.external_data[:]
        tensor.external_data.add(key="location", value=place)
        path.write_bytes(model.SerializeToString())
        with pytest.raises(CheckpointError, match=r"a\.onnx: onnxruntime cannot read it .*[Pp]ath"):
            open_checkpoint(path)


def redescribed(source: Path, path: Path, **changed) -> Path:
    """A copy of an ONNX file whose description has other fields, without those that are None."""
    model = onnx.load(source)
    (entry,) = (one for one in model.metadata_props if one.key == METADATA_KEY)
    said = json.loads(entry.value) | changed
    entry.value = json.dumps({key: value for key, value in said.items() if key not in changed or value is not None})
    onnx.save(model, path)
    return path


@pytest.mark.parametrize(
    ("changed", "message"), [({"version": 2}, "export version 2, expected 1; a newer toolkit reads it")]
)
def test_a_file_of_another_version_is_one_line(folder: Path, tmp_path: Path, changed: dict, message: str):
    redescribed(folder / "voice.onnx", tmp_path / "a.onnx", **changed)
    with pytest.raises(InputError, match=message):
        load_for_inference(open_checkpoint(tmp_path / "a.onnx"), device=CPU)
