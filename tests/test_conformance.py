"""Every model in the registry keeps the contract of packages and of its role; so do the two of `toy_models`."""

import dataclasses
import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny_harmonic
import tiny_jasper
import tiny_tacotron2
import tiny_vocoder
import tiny_voice
import tiny_waveglow
import torch
from shell import ROOT
from torch import Tensor

from common import registry
from common.config import Architecture, AudioConfig, from_plain, to_plain
from common.options import options_of
from common.precision import Precision
from common.recognition.recognizer import SpeechToText
from common.registry import ModelSpec, get_model
from common.synthesis.networks import MelToWave, TextToMel, TextToWave
from common.synthesis.utterances import Controls
from common.synthesis.vocoder import NetworkVocoder
from common.training.options import RunOptions

TOYS = {"Toy-Flow": "toy_flow", "Toy-VITS": "toy_vits"}
SMALL_AUDIO = AudioConfig(n_mels=8, hop_length=128, win_length=512, filter_length=512)
N_SYMBOLS = 20
# Architectures that are quick, and the mels that they are of
CONFIGS: dict[str, tuple[Any, AudioConfig]] = {
    "FastPitch": (tiny_voice.MODEL, tiny_voice.AUDIO),
    "Tacotron2": (tiny_tacotron2.TINY, AudioConfig(n_mels=tiny_tacotron2.TINY.n_mel_channels)),
    "HiFi-GAN": (tiny_vocoder.TINY, tiny_vocoder.ALIGNED),
    "WaveGlow": (tiny_waveglow.SMALL, tiny_waveglow.TINY_AUDIO),
    "Harmonic": (tiny_harmonic.SMALL, tiny_harmonic.AUDIO),
    "Jasper": (tiny_jasper.SMALL, tiny_jasper.SMALL.features.audio),
    "Toy-Flow": ({"n_mels": 8, "n_symbols": N_SYMBOLS, "channels": 16}, SMALL_AUDIO),
    "Toy-VITS": ({"n_mels": 8, "n_symbols": N_SYMBOLS, "hop_length": 128, "channels": 16}, SMALL_AUDIO),
}
# The modules of every package, and what each defines; those marked by ? may be missing
MODULES = {
    "config": "ModelConfig",
    "arg_parser": "RECIPE TrainingOptions InferenceOptions",
    "model": "build_networks",
    "training_setup": "set_up model_config",
    "data_function": "build_dataset",
    "loss_function": "build_objective",
    "published_checkpoints?": "read_published",
    "export?": "exports",
}
# How functions of packages are called: positional arguments, and keywords
CALLS: dict[tuple[str, str], tuple[int, str]] = {
    ("model", "build_networks"): (3, "inference"),
    ("training_setup", "set_up"): (2, ""),
    ("training_setup", "model_config"): (3, "base"),
    ("training_setup", "find_defaults"): (2, ""),
    ("data_function", "build_dataset"): (2, "audio text training"),
    ("data_function", "teacher_forced_dataset"): (2, "config audio text unknown_symbols networks"),
    ("loss_function", "build_objective"): (2, ""),
    ("published_checkpoints", "read_published"): (2, "path training"),
    ("export", "exports"): (3, ""),
    ("export", "ExportedNetwork"): (4, ""),
}


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "tests" / "toy_models")
    for name, package in TOYS.items():
        monkeypatch.setitem(registry._PACKAGES, name, package)


def of_models(role: str | None = None) -> Callable:
    """Run a test for each model, or for each with a role."""
    names = [name for name in registry._PACKAGES if role is None or get_model(name).role == role]
    return pytest.mark.parametrize("model", [*names, *(TOYS if role in (None, "generator") else ())])


def config_of(model: str) -> Any:
    config = CONFIGS[model][0]
    return get_model(model).config.ModelConfig(**config) if isinstance(config, dict) else config


def network_of(model: str) -> Any:
    """The network that infers, ready to do so."""
    torch.manual_seed(0)
    networks = get_model(model).model.build_networks(config_of(model), CONFIGS[model][1], None, inference=True)
    network = next(iter(networks.values())).eval()
    network.prepare_for_inference()
    return network


def contract_of(spec: ModelSpec) -> type:
    """The class that a model's network fulfills."""
    generator = TextToWave if spec.makes_wave else TextToMel
    return {"generator": generator, "vocoder": MelToWave, "recognizer": SpeechToText}[spec.role]


@of_models()
def test_a_package_has_the_modules_and_names_of_the_convention(model: str):
    spec = get_model(model)
    for module, names in MODULES.items():
        is_there = (Path(sys.modules[spec.package].__file__).parent / f"{module.rstrip('?')}.py").is_file()
        assert is_there or module.endswith("?")
        assert all(spec.find(module.rstrip("?"), name) for name in names.split() if is_there)
    for (module, name), (n_positional, keywords) in CALLS.items():
        if (function := spec.find(module, name)) is not None:
            inspect.signature(function).bind(*range(n_positional), **dict.fromkeys(keywords.split()))
    assert isinstance(spec.arg_parser.RECIPE, RunOptions)
    for kind in (spec.arg_parser.TrainingOptions, spec.arg_parser.InferenceOptions):
        assert kind.__dataclass_params__.frozen and all(known.help for _, _, known in options_of(kind))


def test_options_and_architectures_need_no_pytorch():
    modules = [f"{package}.{name}" for package in registry._PACKAGES.values() for name in ("config", "arg_parser")]
    toys = str(ROOT / "tests" / "toy_models")
    script = f"import sys; sys.path += ['', {toys!r}]; import {', '.join(modules)}; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)


@of_models()
def test_an_architecture_is_of_plain_types_alone_and_its_networks_fulfill_the_role(model: str):
    spec, config = get_model(model), config_of(model)
    assert isinstance(config, Architecture) and dataclasses.fields(config) and type(config).__dataclass_params__.frozen
    assert from_plain(spec.config.ModelConfig, to_plain(config), where="") == config
    networks = spec.model.build_networks(config, CONFIGS[model][1], None)
    (name,) = spec.model.build_networks(config, CONFIGS[model][1], None, inference=True)
    assert name == next(iter(networks))
    assert isinstance(networks[name], contract_of(spec))
    exported = spec.find("export", "ExportedNetwork")
    assert exported is None or issubclass(exported, contract_of(spec))


@of_models("generator")
@torch.inference_mode()
def test_an_utterance_is_spoken_in_a_batch_as_alone(model: str):
    spec, network, lengths = get_model(model), network_of(model), [9, 4, 6]
    controls = network.controls(spec.arg_parser.InferenceOptions(), where=Path("voice.pt"))
    tokens = torch.randint(1, N_SYMBOLS, (3, 9), generator=torch.Generator().manual_seed(1))
    together = network.infer(tokens, torch.tensor(lengths), controls)
    hop = CONFIGS[model][1].hop_length if spec.makes_wave else 1
    for row, length in enumerate(lengths):
        alone = network.infer(tokens[row : row + 1, :length], torch.tensor([length]), controls)
        values, others = (one.wave[:, None] if spec.makes_wave else one.mel for one in (alone, together))
        n_frames = int(alone.lengths)
        assert values.shape[2] == n_frames * hop and int(together.lengths[row]) == n_frames
        torch.testing.assert_close(others[row, :, : n_frames * hop], values[0], atol=1e-4, rtol=0)
        assert not others[row, :, n_frames * hop :].any()
        if together.frames is not None:
            assert int(together.frames[row].sum()) == n_frames
    again = network.infer(tokens, torch.tensor(lengths), Controls())
    assert torch.equal(again.lengths, together.lengths)


@of_models("vocoder")
@torch.inference_mode()
def test_a_vocoder_makes_a_hop_of_each_frame_and_pieces_are_the_whole(model: str):
    spec, network, audio = get_model(model), network_of(model), CONFIGS[model][1]
    settings = network.settings(spec.arg_parser.InferenceOptions(), seed=3, where=Path("vocoder.pt"))
    mel, lengths = torch.randn(2, audio.n_mels, 40, generator=torch.Generator().manual_seed(1)) - 5, [40, 23]
    mel[1, :, 23:] = 30.0  # what is in the padding must not be heard
    waves = network.infer(mel, torch.tensor(lengths), **settings.infer)
    assert waves.shape == (2, 40 * audio.hop_length) and not waves[1, 23 * audio.hop_length :].any()

    def assert_same(first: Tensor, second: Tensor) -> None:
        torch.testing.assert_close(first, second, atol=1e-4, rtol=0)

    for row, length in enumerate(lengths):
        alone = network.infer(mel[row : row + 1, :, :length], None, **settings.infer)
        assert_same(waves[row, : length * audio.hop_length], alone[0])
    vocoder = NetworkVocoder(network, audio, name="x", precision=Precision(), settings=settings)
    assert_same(torch.cat(list(vocoder.stream(mel[0]))), vocoder.speak(mel[:1], [40])[0])


@of_models("recognizer")
@torch.inference_mode()
def test_a_recognizer_transcribes_in_a_batch_as_alone(model: str):
    spec, network = get_model(model), network_of(model)
    settings = network.settings(spec.arg_parser.InferenceOptions())
    lengths = torch.tensor([16000, 9000, 6411, 4000])
    waves = torch.randn(4, 16000, generator=torch.Generator().manual_seed(1))
    waves *= torch.arange(16000) < lengths[:, None]
    texts, log_probs = network.transcribe(waves, lengths, settings)
    for row, length in enumerate(lengths.tolist()):
        (text,), (alone,) = network.transcribe(waves[row : row + 1, :length], lengths[row : row + 1], settings)
        assert text == texts[row] == network.normalize(text)
        torch.testing.assert_close(log_probs[row], alone, atol=1e-4, rtol=0)
