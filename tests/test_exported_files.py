"""Exported files of strangers: TorchScript's code is never run, and ONNX gives what it should or is one line."""

import io
import json
import re
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import soundfile
import tiny_jasper
import tiny_tacotron2
import tiny_vocoder
import tiny_voice
import tiny_waveglow
import torch
from onnx import TensorProto, helper
from onnx_changes import node, with_output
from torch import Tensor, nn

import inference
from common.checkpoints import Checkpoint, load_for_inference, open_checkpoint, save_checkpoint
from common.checkpoints.exported import ARCHIVE_ENTRY, METADATA_KEY
from common.checkpoints.exporting import largest_difference, written_runner
from common.checkpoints.loading import exported_runners
from common.config import TextConfig, to_plain
from common.errors import CheckpointError, InputError
from common.text import TextFrontEnd
from hifigan.model import build_networks
from jasper.model import Jasper
from scripts import export_model, inspect_checkpoint
from waveglow.model import WaveGlow

CPU = torch.device("cpu")
PHONES = TextConfig(input_type="pf", symbol_set="", cleaners=(), speakers=("ann", "bob"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A voice and a vocoder in both formats, and a list of a mel."""
    made = tmp_path_factory.mktemp("exported")
    save_voice(made / "voice.pt")
    tiny_voice.save_vocoder(made / "vocoder.pt")
    for name in ("voice", "vocoder"):
        for kind in ("onnx", "torchscript"):
            export_model.main([str(made / f"{name}.pt"), "--format", kind])
    torch.save(torch.randn(16, 20, generator=torch.Generator().manual_seed(1)) - 5, made / "a.pt")
    (made / "list.tsv").write_text("output\tmel\na.wav\ta.pt\n")
    return made


def vocode(folder: Path, vocoder: Path, output: Path) -> np.ndarray:
    """The sound that a vocoder makes of the list's mel."""
    words = ["-i", str(folder / "list.tsv"), "--dataset-path", str(folder), "--hifigan", str(vocoder)]
    assert inference.main([*words, "-o", str(output)]) == 0
    return soundfile.read(output / "a.wav")[0]


def save_voice(path: Path) -> None:
    tiny_voice.save_voice(path, model=tiny_voice.with_symbols(len(tiny_voice.symbols_of(tiny_voice.TEXT))))


def save_voice_of_vectors(path: Path) -> None:
    text = replace(PHONES, phone_features=("a 1 0", "b 0 1"))
    model = replace(
        tiny_voice.MODEL,
        symbol_type="pf",
        n_symbols=TextFrontEnd(text).n_symbols,
        pitch_statistics_per_speaker=True,
        mask_convolutions=False,
        energy_conditioning=False,
        learned_alignment=True,
        in_fft_n_heads=2,
    )
    tiny_voice.save_voice(path, text=text, model=model)


def save_jasper(path: Path) -> None:
    config = replace(tiny_jasper.SMALL, activation="selu")
    networks = {"jasper": Jasper(config).state_dict()}
    save_checkpoint(path, Checkpoint("Jasper", to_plain(config), config.features.audio, None, networks))


def save_waveglow(path: Path) -> None:
    audio = tiny_waveglow.TINY_AUDIO
    network = tiny_waveglow.lively(WaveGlow(tiny_waveglow.SMALL, hop_length=audio.hop_length))
    networks = {"waveglow": network.state_dict()}
    save_checkpoint(path, Checkpoint("WaveGlow", to_plain(tiny_waveglow.SMALL), audio, None, networks))


def save_hifigan_of_pairs(path: Path) -> None:
    config = replace(tiny_vocoder.TINY, resblock="1", resblock_dilation_sizes=((1, 3, 5),))
    audio = tiny_vocoder.ALIGNED
    network = build_networks(config, audio, None, inference=True)["generator"]
    save_checkpoint(path, Checkpoint("HiFi-GAN", to_plain(config), audio, None, {"generator": network.state_dict()}))


def save_tacotron2(path: Path) -> None:
    n_symbols = TextFrontEnd(TextConfig()).n_symbols
    tiny_tacotron2.save_voice(path, tiny_tacotron2.speaking_network(seed=12, n_symbols=n_symbols))


MODELS = [save_voice, save_voice_of_vectors, save_hifigan_of_pairs, save_jasper, save_waveglow, save_tacotron2]


@pytest.mark.parametrize("save", MODELS)
def test_the_weights_of_torchscript_in_our_network_compute_what_its_graph_does(
    tmp_path: Path, save: Callable[[Path], None]
):
    torch.manual_seed(0)
    save(tmp_path / "a.pt")
    export_model.main([str(tmp_path / "a.pt"), "--format", "torchscript"])
    checkpoint = open_checkpoint(tmp_path / "a.pt")
    parts = checkpoint.spec.exports(*load_for_inference(checkpoint, device=CPU), checkpoint.checkpoint.audio).parts
    paths = [tmp_path / f"a.{part.name}.ts" if part.name else tmp_path / "a.ts" for part in parts]
    for part, path in zip(parts, paths, strict=True):
        own = exported_runners(open_checkpoint(path), device=CPU)[part.name]
        graph = written_runner(path, part, format="torchscript")  # by torch.jit.load, as others would
        for run in (own, graph):
            assert largest_difference(run, part) < 1e-5
        inputs = dict(zip(part.inputs, part.examples(2, 17, torch.Generator().manual_seed(2))))
        made, expected = own(inputs), graph(inputs)
        assert list(made) == list(expected) == list(part.outputs)
        for name, value in expected.items():
            torch.testing.assert_close(made[name], value, atol=1e-6, rtol=1e-5)


class Writing(nn.Module):
    """Creates ``target`` in `forward`, and while the file is loaded."""

    def __init__(self, target: str) -> None:
        super().__init__()
        self.target = target

    @torch.jit.export
    def __getstate__(self) -> tuple[str, bool]:
        return self.target, self.training

    @torch.jit.export
    def __setstate__(self, state: tuple[str, bool]) -> None:
        self.target, self.training = state
        torch.from_file(self.target, True, 24)

    def forward(self, mel: Tensor, lengths: Tensor) -> Tensor:
        torch.from_file(self.target, True, 24)
        return mel.sum(1)


Change = Callable[[str, bytes], bytes | None]


def rewritten(source: Path, path: Path, change: Change, method: int = zipfile.ZIP_STORED, **added: bytes) -> Path:
    """A copy of an archive with other records; the description is compressed by ``method``."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w") as new:
        names = old.namelist()
        for name in names:
            if (data := change(name, old.read(name))) is not None:
                new.writestr(name, data, method if ARCHIVE_ENTRY in name else zipfile.ZIP_STORED)
        for name, data in added.items():
            new.writestr(f"{names[0].partition('/')[0]}/{name}", data)
    return path


def replaced(suffix: str, old: bytes, new: bytes) -> Change:
    """The change that replaces the first ``old`` of the records that end so."""
    return lambda name, data: data.replace(old, new, 1) if name.endswith(suffix) else data


CODE = {
    "that writes": b"class ExportableGenerator(Module):\n  def forward(self, x: Tensor) -> Tensor:\n"
    b'    return torch.from_file("owned", True, 24)\n',
    "nested": b"(" * 1_000_000,
    "none": b"",
}


@pytest.mark.parametrize("name", CODE)
def test_code_in_torchscript_is_not_read(folder: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(torch.jit, "load", lambda *_, **__: pytest.fail("loaded"))
    path = rewritten(folder / "vocoder.ts", tmp_path / "a.ts", lambda n, data: CODE[name] if "/code/" in n else data)
    sound = vocode(folder, path, tmp_path / "out")
    np.testing.assert_allclose(sound, vocode(folder, folder / "vocoder.pt", tmp_path / "expected"), atol=4e-5)
    assert not (tmp_path / "owned").exists() and np.abs(sound).max() > 0.01


def test_objects_that_write_while_they_are_loaded_are_refused(folder: Path, tmp_path: Path):
    with zipfile.ZipFile(folder / "vocoder.ts") as archive:
        name = next(name for name in archive.namelist() if name.endswith(ARCHIVE_ENTRY))
        extra = {ARCHIVE_ENTRY: archive.read(name)}
    torch.jit.save(torch.jit.script(Writing(str(tmp_path / "owned"))), tmp_path / "a.ts", _extra_files=extra)
    with pytest.raises(CheckpointError, match=r"a\.ts: its weights do not fit the model: missing network\.conv_pre"):
        vocode(folder, tmp_path / "a.ts", tmp_path / "out")
    assert not (tmp_path / "owned").exists()


def with_nan(name: str, data: bytes) -> bytes:
    return np.float32("nan").tobytes() + data[4:] if name.endswith("/data/3") else data


CHANGES = {
    "another name": (replaced("data.pkl", b"ctorch._utils\n_rebuild_tensor_v2", b"cos\nsystem"), "os.system"),
    "a value of the number 3": (
        replaced("data.pkl", b"q\x01", b"q\x01r\xff\xff\xff\xf0"),
        "numbers a value 4043309055",
    ),
    "more than is stored": (replaced("data.pkl", b"K\x10", b"K\x7f"), "cannot be read, damaged"),
    "another weight": (replaced("data.pkl", b"conv_post", b"conv_past"), "missing .*; unexpected .*conv_past"),
    "a long name": (
        replaced("data.pkl", b"X\x09\0\0\0conv_post", b"X\x2c\1\0\0" + b"n" * 300),
        "a network with a part called 'nnn",
    ),
    "no weights": (lambda name, data: b"\x80\x02)." if name.endswith("data.pkl") else data, "missing network"),
    "not finite": (with_nan, r"network\.\S+ is not finite"),
    "no storage": (lambda name, data: None if name.endswith("data/3") else data, "without .*data/3"),
    "another pickle": (lambda name, data: data, "2 files called data.pkl"),
    "no description": (replaced(ARCHIVE_ENTRY, b"{", b"["), "its description"),
    "another model": (replaced(ARCHIVE_ENTRY, b'"HiFi-GAN"', b'"WaveGlow"'), "config.model|expected one of HiFi-GAN"),
    "other outputs": (replaced(ARCHIVE_ENTRY, b'"samples"', b'"frames"'), "other inputs or outputs than HiFi-GAN has"),
    "other parts": (replaced(ARCHIVE_ENTRY, b'"parts": [""]', b'"parts": ["", "/x"]'), "other parts than HiFi-GAN has"),
    "a large network": (
        lambda name, data: re.sub(rb'("upsample_initial_channel": )\d+', rb"\g<1>60000", data),
        "of a network of more than",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_torchscript_with_other_weights_or_descriptions_is_one_line(folder: Path, tmp_path: Path, name: str):
    change, message = CHANGES[name]
    added = {"more/data.pkl": b"\x80\x02)."} if name == "another pickle" else {}
    path = rewritten(folder / "vocoder.ts", tmp_path / "a.ts", change, **added)
    with pytest.raises(CheckpointError, match=rf"a\.ts: .*({message})"):
        vocode(folder, path, tmp_path / "out")


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_a_description_that_inflates_is_not_inflated(folder: Path, tmp_path: Path, method: int):
    n_spaces = 34_000_000 if method == zipfile.ZIP_DEFLATED else 0  # others are not read at all

    def padded(name: str, data: bytes) -> bytes:
        return b" " * n_spaces + data if ARCHIVE_ENTRY in name else data

    path = rewritten(folder / "vocoder.ts", tmp_path / "a.ts", padded, method)
    with pytest.raises(CheckpointError, match=r"a\.ts: damaged, an archive whose .*speech_toolkit\.json'"):
        open_checkpoint(path)


OUTPUTS = {  # of a vocoder
    "fails": ((node("Reshape", "old", "a"),), {"a": [7, -1]}, "onnxruntime cannot run it"),
    "scalar": ((node("ReduceSum", "old", keepdims=0),), {}, "output wave is .*0 dimensions, expected float32 of 2 d"),
    "text": ((node("Cast", "old", to=TensorProto.STRING),), {}, "output wave is 'object' of 2 dimensions, expected"),
    "int64": ((node("Cast", "old", to=TensorProto.INT64),), {}, "output wave is 'int64' of 2 dimensions, expected"),
    "double": ((node("Cast", "old", to=TensorProto.DOUBLE),), {}, "output wave is 'float64' of 2 dimensions"),
    "bool": ((node("Cast", "old", to=TensorProto.BOOL),), {}, "output wave is 'bool' of 2 dimensions, expected"),
    "longer": ((node("Concat", "old", "old", axis=1),), {}, "samples are 10240, expected 256 for each of 20 frames"),
    "empty": (
        (node("Slice", "old", "a", "a", "a"),),
        {"a": [1]},
        "output wave has the shape .*expected 1 for 'samples'",
    ),
    "a batch of two": ((node("Concat", "old", "old", axis=0),), {}, "the shape .*, expected 1 for 'batch'"),
    "a list": ((node("SequenceConstruct", "old"),), {}, "cannot read it|output wave is list"),
}
KINDS = {"text": TensorProto.STRING, "int64": TensorProto.INT64, "double": TensorProto.DOUBLE, "bool": TensorProto.BOOL}


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_graph_that_gives_something_else_is_one_line(
    folder: Path, tmp_path: Path, name: str, capfd: pytest.CaptureFixture
):
    nodes, values, message = OUTPUTS[name]
    kind = KINDS.get(name, TensorProto.FLOAT)
    (tmp_path / "a.onnx").write_bytes(with_output(folder / "vocoder.onnx", "wave", *nodes, kind=kind, **values))
    with pytest.raises(CheckpointError, match=rf"a\.onnx: .*({message})"):
        vocode(folder, tmp_path / "a.onnx", tmp_path / "out")
    assert capfd.readouterr().err == ""  # onnxruntime logs nothing beside it


COUNTS = {  # outputs of a voice, each by a node that changes it
    "mel_lengths": ("Mul", [0], "mel_lengths lie outside 1 to .*, the frames"),
    "frames_of_tokens": ("Add", [10**6], "frames_of_tokens lie outside 0 to"),
    "frames_of_tokens ": ("Div", [2], "frames_of_tokens does not add up to mel_lengths"),
    "predicted_durations": ("Cast", [], "predicted_durations is 'int64' of 2 dimensions, expected float32"),
    "spoken_pitch": ("Transpose", [], "spoken_pitch has the shape .*, expected 1 for 'batch'"),
}


@pytest.mark.parametrize("output", COUNTS)
def test_a_voice_whose_counts_or_controls_are_wrong_is_one_line(folder: Path, tmp_path: Path, output: str):
    operator, constant, message = COUNTS[output]
    output = output.strip()
    kind = TensorProto.INT64 if operator != "Transpose" else TensorProto.FLOAT
    attributes = {"to": TensorProto.INT64} if operator == "Cast" else {}
    made = node(operator, "old", *(["a"] if constant else []), output=output, **attributes)
    values = {"a": constant} if constant else {}
    (tmp_path / "a.onnx").write_bytes(with_output(folder / "voice.onnx", output, made, kind=kind, **values))
    words = ["--fastpitch", str(tmp_path / "a.onnx"), "--hifigan", str(folder / "vocoder.pt"), "--text", "hello"]
    with pytest.raises(CheckpointError, match=rf"a\.onnx: damaged, its output {message}"):
        inference.main([*words, "-o", str(tmp_path / "out")])


@pytest.mark.parametrize("output, value", [("spoken_pitch", "nan"), ("spoken_energy", "1e30"), ("mel", "inf")])
def test_a_voice_whose_numbers_are_absurd_is_one_line(folder: Path, tmp_path: Path, output: str, value: str):
    data = with_output(folder / "voice.onnx", output, node("Add", "old", "a", output=output), a=np.float32(value))
    (tmp_path / "a.onnx").write_bytes(data)
    words = ["--fastpitch", str(tmp_path / "a.onnx"), "--hifigan", str(folder / "vocoder.pt"), "--text", "hello"]
    with pytest.raises(InputError, match=r"what no prosody table has: (pitch|energy)|not finite"):
        inference.main([*words, "-o", str(tmp_path / "out"), "--timings"])


def test_a_graph_of_other_inputs_or_outputs_is_not_opened(folder: Path, tmp_path: Path):
    model = onnx.load(folder / "vocoder.onnx")
    model.graph.input.append(helper.make_tensor_value_info("more", TensorProto.FLOAT, [1]))
    onnx.save(model, tmp_path / "a.onnx")
    with pytest.raises(
        CheckpointError, match=r"a\.onnx: its graph has the inputs \['mel', 'lengths', 'more'\], expected"
    ):
        load_for_inference(open_checkpoint(tmp_path / "a.onnx"), device=CPU)
    data = with_output(folder / "vocoder.onnx", "wave", node("Identity", "old", output="sound"))
    model = onnx.load(io.BytesIO(data))
    model.graph.output[0].name = "sound"
    onnx.save(model, tmp_path / "b.onnx")
    with pytest.raises(CheckpointError, match=r"b\.onnx: its graph has the outputs \['sound'\], expected wave"):
        load_for_inference(open_checkpoint(tmp_path / "b.onnx"), device=CPU)


def redescribed(source: Path, path: Path, **changed) -> Path:
    """A copy of an ONNX file whose description has other fields, without those that are None."""
    model = onnx.load(source)
    (entry,) = (one for one in model.metadata_props if one.key == METADATA_KEY)
    said = json.loads(entry.value) | changed
    entry.value = json.dumps({key: value for key, value in said.items() if key not in changed or value is not None})
    onnx.save(model, path)
    return path


def test_inspecting_graphs_of_strangers_says_one_line(folder: Path, tmp_path: Path):
    other = redescribed(folder / "vocoder.onnx", tmp_path / "a.onnx", outputs={"sound": ["batch"]})
    with pytest.raises(CheckpointError, match=r"a\.onnx: its description is of other outputs than its graph has"):
        inspect_checkpoint.main([str(other)])
    other = redescribed(folder / "vocoder.onnx", tmp_path / "a.onnx", network="evil")
    with pytest.raises(CheckpointError, match=r"a\.onnx: of a network 'evil', which no HiFi-GAN has"):
        inspect_checkpoint.main([str(other)])


@pytest.mark.parametrize("name", [b'"HiFi-GAN"', b"wave", b"mel"])
def test_names_that_are_no_text_are_one_line(folder: Path, tmp_path: Path, name: bytes):
    data = (folder / "vocoder.onnx").read_bytes()
    (tmp_path / "a.onnx").write_bytes(data.replace(name, name[:1] + b"\xff" + name[2:]))
    with pytest.raises(CheckpointError, match=r"a\.onnx: onnxruntime cannot read it \(UnicodeDecodeError"):
        vocode(folder, tmp_path / "a.onnx", tmp_path / "out")


DESCRIPTIONS = [  # of a voice: a field, its value (None: absent), and what is said
    ("inputs", None, "other inputs or outputs than FastPitch has"),
    ("outputs", {"mel": ["batch"]}, "other inputs or outputs than FastPitch has"),
    ("parts", ["", "../../x"], "other parts than FastPitch has"),
    ("pitch_mean", [1.0, 2.0, 3.0], "pitch_mean of 3 speakers"),
    ("pitch_mean", "x", "lacks what runs it"),
    ("pitch_std", [float("nan")], "not a number in JSON|pitch_std"),
    ("pitch_std", None, "lacks what runs it"),
]


@pytest.mark.parametrize("key, value, message", DESCRIPTIONS)
def test_a_description_that_is_of_no_such_graph_is_one_line(folder: Path, tmp_path: Path, key, value, message: str):
    redescribed(folder / "voice.onnx", tmp_path / "a.onnx", **{key: value})
    with pytest.raises(CheckpointError, match=rf"a\.onnx: .*({message})"):
        load_for_inference(open_checkpoint(tmp_path / "a.onnx"), device=CPU)
