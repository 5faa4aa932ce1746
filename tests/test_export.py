"""Exported files: they agree with PyTorch, say what they hold, and speak in place of checkpoints."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import soundfile
import tiny_voice
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor

import inference
from common.checkpoints.exported import ARCHIVE_ENTRY, METADATA_KEY
from common.checkpoints.loading import load_for_inference, open_checkpoint
from common.config import to_plain
from common.errors import CheckpointError, InputError, OptionError
from common.synthesis.loading import load_voice
from common.synthesis.utterances import Controls
from common.text.front_end import TextFrontEnd
from scripts import checkpoint_tools

CPU = torch.device("cpu")
SUFFIXES = {"onnx": ".onnx", "safetensors": ".safetensors"}  # of the formats that are read
VOICE = tiny_voice.with_symbols(len(tiny_voice.symbols_of(tiny_voice.TEXT)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A voice and a vocoder, each as checkpoint and in every format that is read."""
    made = tmp_path_factory.mktemp("exported")
    tiny_voice.save_voice(made / "voice.pt", model=VOICE)
    tiny_voice.save_vocoder(made / "vocoder.pt")
    for name in ("voice", "vocoder"):
        for kind in (*SUFFIXES, "torchscript"):  # whose difference from PyTorch the command measures
            checkpoint_tools.export([str(made / f"{name}.pt"), "--format", kind])
    return made


def network(path: Path):
    """What infers."""
    return load_for_inference(open_checkpoint(path), device=CPU)[0]


def batch() -> tuple[Tensor, Tensor]:
    """Tokens of three utterances of unlike lengths."""
    lengths = torch.tensor([9, 4, 13])
    return torch.randint(1, VOICE.n_symbols, (3, 13), generator=torch.Generator().manual_seed(2)), lengths


def given(low: float, high: float) -> Tensor:
    """Values for the tokens of `batch`."""
    return torch.rand(3, 13, generator=torch.Generator().manual_seed(5)) * (high - low) + low


CONTROLS = {
    "none": Controls(),
    "speakers and pace": Controls(speaker=torch.tensor([1, 0, 1]), pace=1.7, max_duration=4.0),
    "pace of tokens": Controls(pace=given(0.5, 2)),
    "durations": Controls(durations=given(0, 6).round() * (torch.arange(13) < batch()[1][:, None])),
    "pitch": Controls(pitch=given(-1, 1) * (given(0, 1) > 0.3)),
    "pitch in Hz": Controls(pitch_hz=given(150, 250) * (given(0, 1) > 0.3)),
    "energy": Controls(energy=given(1, 3)),
    "pitch transform": Controls(pitch_transform=lambda pitch, lengths, mean, std: 1.5 * pitch + 20 / std),
}


@pytest.mark.parametrize("name", CONTROLS)
def test_every_control_does_in_an_exported_voice_what_it_does_in_pytorch(folder: Path, name: str):
    tokens, lengths = batch()
    expected = network(folder / "voice.pt").infer(tokens, lengths, CONTROLS[name])
    made = network(folder / "voice.onnx").infer(tokens, lengths, CONTROLS[name])
    assert torch.equal(made.lengths, expected.lengths) and torch.equal(made.frames, expected.frames)
    torch.testing.assert_close(made.mel, expected.mel, atol=2e-5, rtol=0)
    torch.testing.assert_close(made.durations, expected.durations, atol=1e-4, rtol=0)
    valid = torch.arange(13) < lengths[:, None]
    torch.testing.assert_close(made.pitch_hz[valid], expected.pitch_hz[valid], atol=1e-3, rtol=0)
    torch.testing.assert_close(made.decoded_energy[valid], expected.decoded_energy[valid], atol=1e-4, rtol=0)


@pytest.mark.parametrize("kind", SUFFIXES)
@pytest.mark.parametrize("options", ["", "--pitch-transform-shift 20 --speaker bob"])
def test_inference_speaks_exported_files_as_checkpoints(folder: Path, tmp_path: Path, kind: str, options: str):
    sounds = []
    for suffix in (".pt", SUFFIXES[kind]):
        models = ["--fastpitch", str(folder / f"voice{suffix}"), "--hifigan", str(folder / f"vocoder{suffix}")]
        text = 'Hello <prosody rate="slow" pitch="+20%">world</prosody>.'
        words = [*models, "--text", text, *options.split(), "-o", str(tmp_path / suffix)]
        words += ["--denoising-strength", "0.01"]
        assert inference.main(words) == 0
        sounds.append(soundfile.read(tmp_path / suffix / "speech.wav")[0])
    assert len(sounds[0]) == len(sounds[1]) and np.abs(sounds[0]).max() > 0.05
    np.testing.assert_allclose(sounds[0], sounds[1], atol=4e-5)
    logs = [json.loads(line[5:]) for line in (tmp_path / suffix / "nvlog_infer.json").read_text().splitlines()]
    assert any("hifigan_samples/s" in log.get("data", {}) for log in logs)


def test_a_file_says_what_its_symbols_mels_and_pitch_are(folder: Path):
    model = onnx.load(folder / "voice.onnx")
    (stored,) = [entry.value for entry in model.metadata_props if entry.key == METADATA_KEY]
    said = json.loads(stored)
    assert said["symbols"] == TextFrontEnd(tiny_voice.TEXT).symbols
    assert said["config"]["audio"] == to_plain(tiny_voice.AUDIO)
    assert said["config"]["text"] == json.loads(json.dumps(to_plain(tiny_voice.TEXT)))
    assert (said["pitch_mean"], said["pitch_std"], said["pitch_unit"]) == ([200.0], [40.0], "Hz")
    for suffix in SUFFIXES.values():
        read, checkpoint = open_checkpoint(folder / f"voice{suffix}"), open_checkpoint(folder / "voice.pt")
        assert (read.spec, read.checkpoint.text) == (checkpoint.spec, checkpoint.checkpoint.text)
        assert read.checkpoint.audio == checkpoint.checkpoint.audio


@pytest.fixture(scope="module")
def calibration(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A list of four mels."""
    made = tmp_path_factory.mktemp("mels")
    generator = torch.Generator().manual_seed(7)
    for number in range(4):
        torch.save(torch.randn(tiny_voice.AUDIO.n_mels, 20 + number, generator=generator) - 5, made / f"{number}.pt")
    rows = [f"{number}.wav\t{made}/{number}.pt" for number in range(4)]
    (made / "list.tsv").write_text("\n".join(["output\tmel", *rows]) + "\n")
    return made / "list.tsv"


def test_quantized_files_hold_integers_and_their_mel_distance_is_printed(
    folder: Path, calibration: Path, tmp_path: Path, capsys: pytest.CaptureFixture
):
    # Widths that are multiples of 16: onnxruntime 1.23, the last for Python 3.10, multiplies others wrongly with AMX.
    tiny_voice.save_voice(tmp_path / "voice.pt", model=replace(VOICE, in_fft_d_head=16, out_fft_d_head=16))
    sources = {"voice": tmp_path / "voice.pt", "vocoder": folder / "vocoder.pt"}
    operators, words = {"voice": "MatMulInteger", "vocoder": "DequantizeLinear"}, {"voice": [], "vocoder": []}
    words["vocoder"] = ["--calibration", str(calibration), "--tolerance", "1"]  # so narrow a network is coarse
    for name, operator in operators.items():
        target = tmp_path / f"{name}.onnx"
        checkpoint_tools.export([str(sources[name]), "--quantize", "int8", *words[name], "-o", str(target)])
        line = capsys.readouterr().out.strip()
        assert line.startswith(f"wrote {target}: ") and "int8, mean mel distance from PyTorch 0." in line
        graph = onnx.load(target).graph
        assert any(node.op_type == operator for node in graph.node)
        stored = [numpy_helper.to_array(one) for one in graph.initializer if one.data_type == TensorProto.INT8]
        assert max(np.abs(one.astype(int)).max() for one in stored if one.ndim > 1) <= 64, "pairs of 8 bits overflow"
        assert open_checkpoint(target).exported.description["quantized"] == "int8"
    made = load_voice(tmp_path / "voice.onnx", tmp_path / "vocoder.onnx", device="cpu")
    expected = load_voice(sources["voice"], sources["vocoder"], device="cpu")
    waves = [voice.speak("two words").wave for voice in (made, expected)]
    assert abs(len(waves[0]) - len(waves[1])) <= 0.1 * len(waves[1])
    tokens, lengths = batch()
    mels = [voice.synthesizer.network.infer(tokens, lengths, CONTROLS["durations"]).mel for voice in (made, expected)]
    assert 0 < (mels[0] - mels[1]).abs().mean() < 0.1


@pytest.mark.parametrize(
    "name, options, message",
    [
        ("voice", "--tolerance 1e-12", "largest difference from PyTorch .*, above the tolerance 1e-12; removed"),
        ("voice", "--quantize int8 --tolerance 1e-6", "mean mel distance from PyTorch .*, above the tolerance 1e-06"),
        ("vocoder", "--quantize int8", "HiFi-GAN needs --calibration LIST"),
        ("voice", "--quantize int8 --format torchscript", "FastPitch can't be exported this way"),
    ],
)
def test_a_file_that_differs_too_much_or_cannot_be_is_not_there(
    folder: Path, tmp_path: Path, name: str, options: str, message: str
):
    with pytest.raises(InputError, match=message):
        checkpoint_tools.export([str(folder / f"{name}.pt"), *options.split(), "-o", str(tmp_path / "a.onnx")])
    assert list(tmp_path.iterdir()) == []
    before = (folder / "voice.onnx").read_bytes()
    with pytest.raises(OptionError, match="already exists"):
        checkpoint_tools.export([str(folder / "voice.pt")])
    assert (folder / "voice.onnx").read_bytes() == before


def test_damaged_files_are_refused(folder: Path, tmp_path: Path):
    for suffix in SUFFIXES.values():
        content = (folder / f"voice{suffix}").read_bytes()
        (tmp_path / "cut").write_bytes(content[: len(content) // 2])
        with pytest.raises(CheckpointError, match="cut: "):
            network(tmp_path / "cut")


def test_a_torchscript_file_is_written_and_not_read(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    checkpoint_tools.export([str(folder / "vocoder.pt"), "--format", "torchscript", "-o", str(tmp_path / "a.pt")])
    extra = {ARCHIVE_ENTRY: ""}
    torch.jit.load(tmp_path / "a.pt", _extra_files=extra)
    assert json.loads(extra[ARCHIVE_ENTRY])["model"] == "HiFi-GAN"
    monkeypatch.setattr(torch.jit, "load", lambda *_, **__: pytest.fail("loaded"))
    line = r"a\.pt: cannot be read .*; give the checkpoint that the TorchScript file was made from$"
    with pytest.raises(CheckpointError, match=line):
        network(tmp_path / "a.pt")
    for command in (checkpoint_tools.inspect, checkpoint_tools.export):
        with pytest.raises(CheckpointError, match=line):
            command([str(tmp_path / "a.pt")])


def test_a_graph_that_cannot_be_run_is_one_line(folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture):
    model = onnx.load(folder / "vocoder.onnx")
    weight = next(one for one in model.graph.initializer if len(one.dims) == 4 and one.dims[0] != one.dims[1])
    weight.dims[0], weight.dims[1] = weight.dims[1], weight.dims[0]
    onnx.save(model, tmp_path / "a.onnx")
    with pytest.raises(CheckpointError, match=r"a\.onnx: onnxruntime cannot run it"):
        network(tmp_path / "a.onnx").infer(torch.randn(1, 16, 20))
    assert capfd.readouterr().err == ""  # onnxruntime logs nothing beside it


@pytest.mark.parametrize("place", ["../x", "/etc/passwd", "link/x", "in/../../x", "a" * 127, "in/" * 60, "lost"])
def test_onnx_whose_weights_are_outside_its_folder_is_refused_unopened(tmp_path: Path, monkeypatch, place: str):
    weights = [helper.make_tensor(name, TensorProto.FLOAT, [1], [1.0]) for name in "vw"]
    for one, location in zip(weights, ("in/near", place), strict=True):
        one.ClearField("float_data")
        one.data_location = TensorProto.EXTERNAL
        one.external_data.add(key="location", value=location)
    (tmp_path / "m" / "in").mkdir(parents=True)
    (tmp_path / "m" / "link").symlink_to(tmp_path)
    (tmp_path / "m" / "in" / "near").write_bytes(bytes(4))
    (tmp_path / "x").write_bytes(bytes(4))
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    graph = helper.make_graph([helper.make_node("Add", ["v", "w"], ["y"])], "g", [], [output], weights)
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    (tmp_path / "m" / "a.onnx").write_bytes(model.SerializeToString())
    monkeypatch.setattr(onnxruntime, "InferenceSession", None)  # which older ones would open it by
    with pytest.raises(CheckpointError, match=r"a\.onnx: (its weights are in a file outside|.* is missing)"):
        open_checkpoint(tmp_path / "m" / "a.onnx")


def test_onnx_whose_weights_are_in_its_folder_is_run(folder: Path, tmp_path: Path, monkeypatch):
    onnx.save(
        onnx.load(folder / "vocoder.onnx"),
        tmp_path / "a.onnx",
        save_as_external_data=True,
        location="w",
        size_threshold=0,
    )
    monkeypatch.chdir(folder)
    mel = torch.randn(1, 16, 20)
    assert torch.equal(network(tmp_path / "a.onnx").infer(mel), network(folder / "vocoder.onnx").infer(mel))


def test_a_file_of_a_newer_version_is_one_line(folder: Path, tmp_path: Path):
    model = onnx.load(folder / "voice.onnx")
    (entry,) = (one for one in model.metadata_props if one.key == METADATA_KEY)
    entry.value = json.dumps(json.loads(entry.value) | {"version": 2})
    onnx.save(model, tmp_path / "a.onnx")
    with pytest.raises(InputError, match="export version 2, expected 1; use a newer toolkit"):
        network(tmp_path / "a.onnx")
