"""Every text-to-mel model speaks through every vocoder from one command line, with options of its own and no others."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
import tiny_voice
import torch
from tiny_checkpoint import save_networks
from tiny_tacotron2 import TINY as TACOTRON2, tiny_network as tiny_tacotron2
from tiny_waveglow import lively
from torch import Tensor, nn

import inference
from common.audio.mel import griffin_lim
from common.audio.wav import load_wav
from common.config import AudioConfig
from common.synthesis.utterances import Controls
from common.text.config import TextConfig
from common.text.front_end import TextFrontEnd
from fastpitch import model as fastpitch
from hifigan import model as hifigan
from tacotron2.model import Tacotron2
from waveglow import model as waveglow

AUDIO = AudioConfig(hop_length=64, n_mels=8)
TEXT = TextConfig()
TEXTS = ("Go on.", "A longer one, by far.", "Hm?")
RATE = AUDIO.sampling_rate
ONE_STEP = 1 / 32768  # of 16 bits
FRAMES = 24  # at which an utterance of Tacotron 2 is cut, or its gate fires
FASTPITCH = dataclasses.replace(tiny_voice.SMALL, n_mel_channels=8)
HIFIGAN = hifigan.ModelConfig(
    n_mel_channels=8,
    upsample_rates=(8, 8),
    upsample_kernel_sizes=(16, 16),
    upsample_initial_channel=8,
    resblock="2",
    resblock_kernel_sizes=(3,),
    resblock_dilation_sizes=((1, 2),),
)
WAVEGLOW = waveglow.ModelConfig(n_mel_channels=8, n_flows=4, n_early_every=2, wn_layers=2, wn_channels=8)


def new_tacotron2() -> Tacotron2:
    """A tiny voice of English that ends the first and the last of ``TEXTS`` itself, and never the second."""
    network = tiny_tacotron2(seed=1, n_mel_channels=8, n_symbols=148, max_decoder_steps=FRAMES)
    with torch.no_grad():
        network.embedding.weight.mul_(10)
        for parameter in network.decoder.parameters():
            parameter.mul_(3)
        network.decoder.gate_layer.linear_layer.bias.sub_(1.0)
    return network


def new_networks() -> dict[str, nn.Module]:
    torch.manual_seed(0)
    networks = {
        "FastPitch": fastpitch.build_networks(FASTPITCH, AUDIO, TEXT)["fastpitch"],
        "HiFi-GAN": hifigan.build_networks(HIFIGAN, AUDIO, None, inference=True)["generator"],
        "WaveGlow": lively(waveglow.build_networks(WAVEGLOW, AUDIO, None)["waveglow"]),
        "Tacotron2": new_tacotron2(),
    }
    with torch.no_grad():
        networks["FastPitch"].duration_predictor.fc.bias.fill_(1.0)
        networks["FastPitch"].proj.bias.fill_(-4.0)
    return {name: network.eval() for name, network in networks.items()}


@pytest.fixture(scope="module")
def networks() -> dict[str, nn.Module]:
    return new_networks()


CONFIGS = {
    "FastPitch": FASTPITCH,
    "HiFi-GAN": HIFIGAN,
    "WaveGlow": WAVEGLOW,
    "Tacotron2": dataclasses.replace(TACOTRON2, n_mel_channels=8, n_symbols=148, max_decoder_steps=FRAMES),
}
NAMES = {"FastPitch": "fastpitch", "HiFi-GAN": "generator", "WaveGlow": "waveglow", "Tacotron2": "tacotron2"}
OPTIONS = {"FastPitch": "--fastpitch", "HiFi-GAN": "--hifigan", "WaveGlow": "--waveglow", "Tacotron2": "--tacotron2"}


def save_all(folder: Path, networks: dict[str, nn.Module]) -> dict[str, Path]:
    """A checkpoint of each network, by model."""
    paths = {name: folder / f"{name}_checkpoint_1.pt" for name in networks}
    for name, network in networks.items():
        text = TEXT if name in ("FastPitch", "Tacotron2") else None
        save_networks(paths[name], name, CONFIGS[name], {NAMES[name]: network}, audio=AUDIO, text=text)
    return paths


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory, networks: dict[str, nn.Module]) -> dict[str, Path]:
    return save_all(tmp_path_factory.mktemp("checkpoints"), networks)


Speak = Callable[..., tuple[int, list[tuple[Tensor, Tensor]]]]


@pytest.fixture
def speak(tmp_path: Path, checkpoints: dict[str, Path]) -> Speak:
    """Run inference.py on ``TEXTS``: words are models and options; returns its status, and (mel, wave) of each text."""
    (tmp_path / "list.txt").write_text("\n".join(TEXTS))

    def call(*words: str) -> tuple[int, list[tuple[Tensor, Tensor]]]:
        argv = f"-i {tmp_path}/list.txt -o {tmp_path}/out --save-mels --fade-out 0".split()
        for word in words:
            argv += [OPTIONS[word], str(checkpoints[word])] if word in OPTIONS else [word]
        status = inference.main(argv)
        names = sorted(path.stem for path in (tmp_path / "out").glob("*.wav"))
        mels = [torch.load(tmp_path / f"out/mels/{name}.pt") for name in names]
        return status, [
            (mel, load_wav(tmp_path / f"out/{name}.wav", sampling_rate=RATE)) for mel, name in zip(mels, names)
        ]

    return call


@torch.no_grad()
def mel_truth(network: nn.Module, text: str) -> Tensor:
    """The mel of an utterance alone, straight from the network."""
    tokens = torch.tensor([TextFrontEnd(TEXT).encode(text)])
    return network.infer(tokens, torch.tensor([tokens.size(1)]), Controls(seed=1234)).mel[0]


@torch.no_grad()
def wave_truth(vocoder: str | None, networks: dict[str, nn.Module], mel: Tensor, **settings) -> Tensor:
    """The sound of a mel alone, scaled down where it is too loud."""
    if vocoder is None:
        wave = griffin_lim(mel, AUDIO, n_iter=3, seed=1234)
    else:
        settings = {"seed": 1234, "sigma": 0.9} | settings if vocoder == "WaveGlow" else {}
        wave = networks[vocoder].infer(mel[None], None, **settings)[0]
    return wave / max(1.0, float(wave.abs().max()))


@pytest.mark.parametrize("vocoder", ["HiFi-GAN", "WaveGlow", None])
@pytest.mark.parametrize("generator", ["FastPitch", "Tacotron2"])
def test_every_combination_speaks(speak: Speak, networks: dict[str, nn.Module], generator: str, vocoder: str | None):
    options = ("--griffin-lim-iters", "3") if vocoder is None else (vocoder,)
    status, spoken = speak(generator, *options)
    assert len(spoken) == len(TEXTS) and status == 0
    for text, (mel, wave) in zip(TEXTS, spoken):
        torch.testing.assert_close(mel, mel_truth(networks[generator], text), rtol=0, atol=1e-5)
        assert len(wave) == mel.size(1) * AUDIO.hop_length
        torch.testing.assert_close(wave, wave_truth(vocoder, networks, mel), rtol=0, atol=2 * ONE_STEP)
        assert wave.std() > 3e-4
