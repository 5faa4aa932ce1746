"""A model repository of Triton Inference Server: what the server would check, what it speaks, and the client."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import soundfile
import tiny_voice
from google.protobuf import text_format
from shell import ROOT, run_bash
from triton_server import RefusedError, Repository, need, pb, serve

import inference
from common.checkpoints import load_checkpoint, open_checkpoint, save_checkpoint
from common.errors import CheckpointError, InputError, OptionError
from common.synthesis import load_voice
from scripts import export_model
from scripts.demos.triton_client import TritonSpeaker
from scripts.demos.triton_client import main as client
from scripts.make_triton_repository import Model, Serving, Tensor, ensemble_config
from scripts.make_triton_repository import main as make_repository

TEXT = "hello, {W ER1 L D} again!"
VOICE = tiny_voice.with_symbols(len(tiny_voice.symbols_of(tiny_voice.TEXT)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A voice and a vocoder, as checkpoints and in ONNX, and the repository of both."""
    made = tmp_path_factory.mktemp("triton")
    tiny_voice.save_voice(made / "voice.pt", model=VOICE)
    tiny_voice.save_vocoder(made / "vocoder.pt")
    export_model.main([str(made / "voice.pt")])
    make_repository([str(made / "models"), *models_of(made, "voice.onnx", "vocoder.pt")])
    return made


@pytest.fixture(scope="module")
def repository(folder: Path) -> Repository:
    """As Triton would load it."""
    return Repository(folder / "models")


@pytest.fixture(scope="module")
def url(repository: Repository) -> Iterator[str]:
    """Of a server with the repository."""
    with serve(repository) as (address, _):
        yield address


def models_of(folder: Path, voice: str, vocoder: str) -> list[str]:
    """Options of the two models."""
    return ["--fastpitch", str(folder / voice), "--hifigan", str(folder / vocoder)]


def test_triton_would_load_the_repository_and_finds_the_models_as_exported(folder: Path, repository: Repository):
    assert set(repository.configs) == {"fastpitch", "hifigan", "speech"}
    assert (folder / "models/fastpitch/1/model.onnx").read_bytes() == (folder / "voice.onnx").read_bytes()
    inputs = {tensor.name: list(tensor.dims) for tensor in repository.configs["speech"].input}
    shapes = open_checkpoint(folder / "voice.onnx").exported.description["inputs"]
    assert inputs == {name: [-1 if len(shape) > 1 else 1] for name, shape in shapes.items()}
    outputs = {tensor.name for tensor in repository.configs["speech"].output}
    assert {"wave", "mel_lengths", "spoken_pitch", "spoken_energy", "frames_of_tokens"} <= outputs
    for name in ("fastpitch", "hifigan"):
        config = repository.configs[name]
        assert (config.max_batch_size, config.dynamic_batching.max_queue_delay_microseconds) == (8, 5000)
        assert config.instance_group[0].kind == pb.ModelInstanceGroup.KIND_AUTO


@pytest.mark.parametrize(
    "file, old, new",
    [
        ("fastpitch", 'name: "fastpitch"', 'name: "voice"'),
        ("fastpitch", "dims: [ 16, -1 ]", "dims: [ 80, -1 ]"),
        ("fastpitch", 'name: "tokens" data_type: TYPE_INT64', 'name: "tokens" data_type: TYPE_INT32'),
        ("hifigan", " reshape { shape: [ ] }", ""),
        ("hifigan", "max_batch_size: 8", "max_batch_size: 4"),
        ("speech", 'key: "lengths" value: "mel_lengths"', 'key: "lengths" value: "frames_of_tokens"'),
        ("speech", '      input_map { key: "energy" value: "energy" }\n', ""),
        ("speech", '      output_map { key: "mel" value: "mel" }\n', ""),
    ],
)
def test_each_rule_of_the_server_is_checked(folder: Path, tmp_path: Path, file: str, old: str, new: str):
    shutil.copytree(folder / "models", tmp_path / "models")
    path = tmp_path / "models" / file / "config.pbtxt"
    assert path.read_text().count(old) == 1
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(RefusedError):
        Repository(tmp_path / "models")


def test_the_options_of_serving_stand_in_the_configurations(folder: Path, tmp_path: Path):
    options = "--max-batch-size 16 --preferred-batch-sizes 4 16 --max-queue-delay 100 --device cpu --instances 2"
    shutil.copyfile(folder / "models/hifigan/1/model.onnx", tmp_path / "vocoder.onnx")
    shutil.copyfile(folder / "voice.onnx", tmp_path / "voice.onnx")
    make_repository([str(tmp_path / "m"), *models_of(tmp_path, "voice.onnx", "vocoder.onnx"), *options.split()])
    configs = Repository(tmp_path / "m").configs
    assert configs["speech"].max_batch_size == 16
    for name in ("fastpitch", "hifigan"):
        batching, (group,) = configs[name].dynamic_batching, configs[name].instance_group
        assert (list(batching.preferred_batch_size), batching.max_queue_delay_microseconds) == ([4, 16], 100)
        assert (group.kind, group.count) == (pb.ModelInstanceGroup.KIND_CPU, 2)


def test_a_description_survives_whatever_its_symbols():
    said = {"symbols": ['"', "\\", "ə", "'", "\n", "\U0001d11e", "\x7f"]}
    tensors = (Tensor("mel", "TYPE_FP32", (-1,)),)
    config = ensemble_config(Model("a", tensors, tensors), Model("b", tensors, ()), said, Serving(1, (), 0, "auto", 1))
    stored = text_format.Parse(config, pb.ModelConfig()).parameters["speech_toolkit"].string_value
    assert json.loads(stored) == said


def test_requests_of_one_batch_make_the_sound_that_each_makes_alone(folder: Path, repository: Repository, url: str):
    voice = load_voice(folder / "voice.pt", folder / "vocoder.pt", device="cpu", fade_out=0)
    utterances = (("two words", 1.0, "ann"), ("a longer one, it seems", 0.8, "bob"), ("yes", 1.5, "bob"))

    def requests(padded_to: int) -> list[dict[str, np.ndarray]]:
        speaker = TritonSpeaker(url, padded_to=padded_to)
        return [
            speaker.tensors(speaker.inputs(speaker.tokens(text), pace=pace, speaker=speaker.speakers.index(name)))
            for text, pace, name in utterances
        ]

    with pytest.raises(RefusedError, match="unlike shapes are not run together"):
        repository.infer("speech", requests(1))
    made = repository.infer("speech", requests(24))
    assert len({one["wave"].shape for one in made}) == 1, "the longest one's length"
    for one, (text, pace, name) in zip(made, utterances):
        expected = voice.speak(text, pace=pace, speaker=name).wave.numpy()
        n_samples = int(one["mel_lengths"][0, 0]) * tiny_voice.AUDIO.hop_length
        assert n_samples == len(expected)
        np.testing.assert_allclose(one["wave"][0, :n_samples], expected, atol=2e-5)


@pytest.mark.parametrize(
    "own, options",
    [
        ("", ""),
        ("--pace 1.5 --pitch-shift 25 --speaker bob", "--pace 1.5 --pitch-transform-shift 25 --speaker bob"),
        ("--energy-shift 0.5 --pad-tokens 1", "--energy-transform-shift 0.5"),
    ],
)
def test_the_client_speaks_as_inference_does(folder: Path, url: str, tmp_path: Path, own: str, options: str):
    assert client([TEXT, "--url", f"{url}/", "-o", str(tmp_path / "own.wav"), *own.split()]) == 0
    checkpoints = models_of(folder, "voice.pt", "vocoder.pt")
    assert inference.main([*checkpoints, "--text", TEXT, *options.split(), "-o", str(tmp_path / "theirs.wav")]) == 0
    made, expected = (soundfile.read(tmp_path / f"{name}.wav") for name in ("own", "theirs"))
    assert made[1] == expected[1] and len(made[0]) == len(expected[0]) > 5000
    np.testing.assert_allclose(made[0], expected[0], atol=4e-5)


def test_the_client_changes_pitch_by_a_factor_and_pads_its_tokens(folder: Path, repository: Repository):
    with serve(repository) as (url, received):
        samples = TritonSpeaker(url).speak("two words", pitch_factor=1.2)
    assert [name for name, _ in received] == ["fastpitch", "speech"]
    for _, request in received:
        assert request["tokens"].shape == (1, 16) and request["lengths"].tolist() == [[9]]
        assert np.isnan(request["energy"]).all() and (request["pace"] == 1).all()
    expected = load_voice(folder / "voice.pt", folder / "vocoder.pt", device="cpu").speak("two words", pitch=1.2)
    np.testing.assert_allclose(samples, expected.wave.numpy(), atol=2e-5)


def test_tokens_are_not_padded_for_a_voice_whose_sound_depends_on_padding(repository: Repository):
    parameter = repository.configs["speech"].parameters["speech_toolkit"]
    about = json.loads(parameter.string_value)
    about["config"]["model"]["mask_convolutions"] = False
    with serve(repository) as (url, _), pytest.MonkeyPatch.context() as patch:
        config = pb.ModelConfig()
        config.CopyFrom(repository.configs["speech"])
        config.parameters["speech_toolkit"].string_value = json.dumps(about)
        patch.setitem(repository.configs, "speech", config)
        speaker = TritonSpeaker(url)
        assert speaker.tensors(speaker.inputs([1, 2, 3]))["tokens"].tolist() == [[1, 2, 3]]


def test_the_client_needs_neither_pytorch_nor_onnxruntime():
    code = "import sys, scripts.demos.triton_client; print({'torch', 'onnxruntime', 'common'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert run.stdout == "set()\n"


def test_what_goes_wrong_at_the_server_is_one_line(
    url: str, repository: Repository, tmp_path: Path, capsys: pytest.CaptureFixture
):
    def error_of(*words: str) -> str:
        assert client([*words, "-o", str(tmp_path / "a.wav")]) == 1
        message = capsys.readouterr().err
        assert len(message.splitlines()) == 1 and not (tmp_path / "a.wav").exists()
        return message

    assert "127.0.0.1:9: no answer (" in error_of("a", "--url", "http://127.0.0.1:9")
    assert "no answer (unknown url type" in error_of("a", "--url", "triton:8000")
    unknown = error_of("a", "--url", url, "--model", "song")
    assert "Request for unknown model: 'song' is not found (status 404 of v2/models/song/config)" in unknown
    foreign = error_of("a", "--url", url, "--model", "hifigan")
    assert "model hifigan is not of scripts/make_triton_repository.sh" in foreign
    assert "does not know '5'" in error_of("5", "--url", url)
    assert "speaker 'eve': expected one of ann, bob" in error_of("a", "--url", url, "--speaker", "eve")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repository, "infer", lambda *_: need(False, "unexpected shape\nfor input"))
        assert "unexpected shape for input (status 400 of v2/models/speech/infer)" in error_of("a", "--url", url)
    with pytest.raises(SystemExit, match="2"):
        client(["a", "--pad-tokens", "0"])


def test_what_triton_cannot_serve_is_refused_and_nothing_is_left(folder: Path, tmp_path: Path):
    def refuse(error: type[InputError], match: str, *words: str) -> None:
        with pytest.raises(error, match=match):
            make_repository([str(tmp_path / "m"), *words])

    fitting = models_of(folder, "voice.onnx", "vocoder.pt")
    sizes = ["--preferred-batch-sizes", "4", "9"]
    refuse(OptionError, "--preferred-batch-sizes 9: larger than --max-batch-size 8", *fitting, *sizes)
    held = load_checkpoint(folder / "vocoder.pt")
    save_checkpoint(tmp_path / "other.pt", replace(held, audio=replace(held.audio, sampling_rate=16000)))
    refuse(
        InputError,
        r"voice\.onnx and .*other\.pt are of different mel-spectrograms: sampling_rate: 22050 .*, 16000",
        *fitting[:2],
        "--hifigan",
        str(tmp_path / "other.pt"),
    )
    swapped = models_of(folder, "vocoder.pt", "voice.onnx")
    refuse(CheckpointError, "a checkpoint of HiFi-GAN, expected one of FastPitch", *swapped)
    model = onnx.load(folder / "models/hifigan/1/model.onnx")
    model.graph.input.append(onnx.helper.make_tensor_value_info("noise", onnx.TensorProto.FLOAT, ["batch", 8, "p"]))
    onnx.save(model, tmp_path / "noisy.onnx")
    noisy = ["--hifigan", str(tmp_path / "noisy.onnx")]
    refuse(OptionError, r"noisy\.onnx: HiFi-GAN takes noise besides mels", *fitting[:2], *noisy)
    assert not [path for path in tmp_path.iterdir() if path.is_dir()], "no folder, whole or temporary"
    (tmp_path / "m").mkdir()
    refuse(OptionError, r"m: exists already; name another FOLDER", *fitting)
    assert list((tmp_path / "m").iterdir()) == []


def test_torchscript_is_refused(folder: Path, tmp_path: Path):
    export_model.main([str(folder / "vocoder.pt"), "--format", "torchscript", "-o", str(tmp_path / "v.ts")])
    with pytest.raises(OptionError, match=r"v\.ts: a torchscript file, the models of the repository are ONNX"):
        words = ["--fastpitch", str(folder / "voice.onnx"), "--hifigan", str(tmp_path / "v.ts")]
        make_repository([str(tmp_path / "m"), *words])


def test_the_script_passes_its_arguments_on():
    result = run_bash(ROOT / "scripts/make_triton_repository.sh", "a b", "--device", "cpu", PYTHON="echo")
    assert (result.returncode, result.stdout) == (0, "-m scripts.make_triton_repository a b --device cpu\n")
