"""Exported files: TorchScript is written and not read; ONNX of strangers gives what it should or is one line."""

import io
import json
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

import inference
from common.checkpoints import Checkpoint, load_for_inference, open_checkpoint, save_checkpoint
from common.checkpoints.exported import ARCHIVE_ENTRY, METADATA_KEY
from common.checkpoints.exporting import largest_difference, written_runner
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
    """A voice and a vocoder in ONNX, and a list of a mel."""
    made = tmp_path_factory.mktemp("exported")
    save_voice(made / "voice.pt")
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
def test_torchscript_computes_what_the_network_does(tmp_path: Path, save: Callable[[Path], None]):
    torch.manual_seed(0)
    save(tmp_path / "a.pt")
    export_model.main([str(tmp_path / "a.pt"), "--format", "torchscript"])
    checkpoint = open_checkpoint(tmp_path / "a.pt")
    parts = checkpoint.spec.exports(*load_for_inference(checkpoint, device=CPU), checkpoint.checkpoint.audio).parts
    for part in parts:
        path = tmp_path / (f"a.{part.name}.ts" if part.name else "a.ts")
        extra = {ARCHIVE_ENTRY: ""}
        torch.jit.load(path, _extra_files=extra)
        said = json.loads(extra[ARCHIVE_ENTRY])
        assert (said["model"], said["part"]) == (checkpoint.spec.name, part.name)
        graph = written_runner(path, part, format="torchscript")
        assert largest_difference(graph, part) < 1e-5
        made = graph(dict(zip(part.inputs, part.examples(2, 17, torch.Generator().manual_seed(2)))))
        assert list(made) == list(part.outputs)


def test_a_torchscript_file_is_written_and_not_read(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    export_model.main([str(folder / "vocoder.pt"), "--format", "torchscript", "-o", str(tmp_path / "a.pt")])
    monkeypatch.setattr(torch.jit, "load", lambda *_, **__: pytest.fail("loaded"))
    line = r"a\.pt: TorchScript files are written, not read; give the checkpoint that it was made of$"
    with pytest.raises(CheckpointError, match=line):
        vocode(folder, tmp_path / "a.pt", tmp_path / "out")
    for command in (inspect_checkpoint.main, export_model.main):
        with pytest.raises(CheckpointError, match=line):
            command([str(tmp_path / "a.pt")])


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
