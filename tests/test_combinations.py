"""Every text-to-mel model speaks through every vocoder from one command line, with options of its own and no others."""

import dataclasses
from pathlib import Path

import pytest
import tiny_voice
import torch
from golden_files import first_matching
from tiny_checkpoint import save_networks
from tiny_tacotron2 import TINY as TACOTRON2, published, tiny_network as tiny_tacotron2
from tiny_waveglow import lively
from torch import Tensor, nn

import inference
from common.audio.denoiser import BIAS_FRAMES, Denoiser
from common.audio.mel import griffin_lim
from common.audio.wav import load_wav
from common.checkpoints.reading import load_checkpoint
from common.config import AudioConfig
from common.errors import InputError, OptionError
from common.synthesis.utterances import Controls
from common.text.config import TextConfig
from common.text.front_end import TextFrontEnd
from fastpitch import model as fastpitch
from hifigan import model as hifigan
from tacotron2.arg_parser import InferenceOptions as Tacotron2Options
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


class Speak:
    """Runs inference.py on a list in a folder; leaves ``out/*.wav`` and ``out/mels/*.pt`` there."""

    def __init__(self, folder: Path, checkpoints: dict[str, Path]) -> None:
        self.folder, self.checkpoints, self.lines = folder, checkpoints, list(TEXTS)
        self.status = 0

    def __call__(self, *words: str) -> list[tuple[Tensor, Tensor]]:
        """``words`` are models and options; returns (mel, wave) of each line."""
        (self.folder / "list.txt").write_text("\n".join(self.lines) + "\n")
        argv = ["-i", self.folder / "list.txt", "-o", self.folder / "out", "--save-mels"]
        argv += [] if "--no-audio" in words else ["--fade-out", "0"]
        argv += ["--dataset-path", self.folder]
        for word in words:
            argv += [OPTIONS[word], self.checkpoints[word]] if word in OPTIONS else [word]
        self.status = inference.main([str(word) for word in argv])
        names = sorted(path.stem for path in (self.folder / "out").glob("*.wav"))
        return [
            (
                torch.load(self.folder / f"out/mels/{name}.pt"),
                load_wav(self.folder / f"out/{name}.wav", sampling_rate=RATE),
            )
            for name in names
        ]


@pytest.fixture
def speak(tmp_path: Path, checkpoints: dict[str, Path]) -> Speak:
    return Speak(tmp_path, checkpoints)


def refused(speak: Speak, *words: str, kind: type[Exception] = OptionError) -> str:
    """The one line that the command ends with, having written nothing."""
    with pytest.raises(InputError) as caught:
        speak(*words)
    assert caught.type is kind and "\n" not in str(caught.value)
    assert not (speak.folder / "out").exists()
    return str(caught.value)


@torch.no_grad()
def mel_truth(network: nn.Module, text: str, controls: Controls | None = None) -> Tensor:
    """The mel of an utterance alone, straight from the network."""
    tokens = torch.tensor([TextFrontEnd(TEXT).encode(text)])
    return network.infer(tokens, torch.tensor([tokens.size(1)]), controls or Controls(seed=1234)).mel[0]


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
    spoken = speak(generator, *options)
    assert len(spoken) == len(TEXTS) and speak.status == 0
    for text, (mel, wave) in zip(TEXTS, spoken):
        torch.testing.assert_close(mel, mel_truth(networks[generator], text), rtol=0, atol=1e-5)
        assert len(wave) == mel.size(1) * AUDIO.hop_length
        torch.testing.assert_close(wave, wave_truth(vocoder, networks, mel), rtol=0, atol=2 * ONE_STEP)
        assert wave.std() > 3e-4


def test_a_phrase_that_the_voice_does_not_end_is_named_and_changes_nothing_for_the_others(speak: Speak, capsys):
    together = speak("Tacotron2", "--griffin-lim-iters", "1", "-bs", "3", "--repeats", "2")
    out, err = capsys.readouterr()
    (warning,) = [line for line in err.splitlines() if line.startswith("warning")]
    assert f"{speak.folder}/list.txt:2 (audio_0002.wav): the voice did not end it; cut after {FRAMES} frames" in warning
    assert "1 of 3 phrases were cut" in out and speak.status == 0
    lengths = [mel.size(1) for mel, _ in together]
    assert lengths[1] == FRAMES and max(lengths[0], lengths[2]) < FRAMES
    for mel, alone in zip(together, speak("Tacotron2", "--griffin-lim-iters", "1", "-bs", "1")):
        torch.testing.assert_close(mel[0], alone[0], rtol=0, atol=1e-5)


def test_a_run_in_which_every_phrase_was_cut_fails_and_keeps_what_it_made(speak: Speak, capsys):
    spoken = speak("Tacotron2", "--griffin-lim-iters", "1", "--max-decoder-steps", "2")
    assert speak.status == 1 and [mel.size(1) for mel, _ in spoken] == [2, 2, 2]
    assert "3 of 3 phrases were cut" in capsys.readouterr().out


def test_tacotron_2_obeys_its_options_and_the_seed(speak: Speak, networks: dict[str, nn.Module]):
    for options, controls in (
        ("--gate-threshold 0.3", Controls(options=Tacotron2Options(gate_threshold=0.3), seed=1234)),
        ("--max-decoder-steps 30 --seed 5", Controls(options=Tacotron2Options(max_decoder_steps=30), seed=5)),
    ):
        for text, (mel, _) in zip(TEXTS, speak("Tacotron2", "--griffin-lim-iters", "1", *options.split())):
            expected = mel_truth(networks["Tacotron2"], text, controls)
            torch.testing.assert_close(mel, expected, rtol=0, atol=1e-5)
            assert mel.shape != (other := mel_truth(networks["Tacotron2"], text)).shape or not torch.equal(mel, other)


def test_waveglow_obeys_its_options_and_the_seed(
    speak: Speak, networks: dict[str, nn.Module], monkeypatch: pytest.MonkeyPatch
):
    compiled = []
    monkeypatch.setattr(torch, "compile", lambda function, dynamic: compiled.append(function) or function)
    usual = speak("FastPitch", "WaveGlow")
    for options, settings in (("--sigma-infer 0.4", {"sigma": 0.4}), ("--seed 5", {"seed": 5})):
        for (mel, wave), (_, other) in zip(speak("FastPitch", "WaveGlow", *options.split()), usual):
            expected = wave_truth("WaveGlow", networks, mel, **settings)
            torch.testing.assert_close(wave, expected, rtol=0, atol=2 * ONE_STEP)
            assert (wave - other).abs().max() > 0.01
    for options in ("--chunk-frames 5", "--wn-channels 8 --compile"):
        for (_, wave), (_, other) in zip(speak("FastPitch", "WaveGlow", *options.split()), usual):
            torch.testing.assert_close(wave, other, rtol=0, atol=2 * ONE_STEP)
    assert len(compiled) == 2, "generator and vocoder"


def test_waveglows_own_noise_is_subtracted(speak: Speak, networks: dict[str, nn.Module]):
    network = networks["WaveGlow"]
    hush = network.infer(torch.zeros(1, 8, BIAS_FRAMES), None, sigma=0.0, seed=1234)[0]  # as published
    denoise = Denoiser(hush, AUDIO, strength=0.3)
    for mel, wave in speak("FastPitch", "WaveGlow", "--denoising-strength", "0.3", "--sigma-infer", "0.7"):
        plain = network.infer(mel[None], None, sigma=0.7, seed=1234)
        expected = denoise(plain)[0]
        expected = expected / max(1.0, float(expected.abs().max()))
        torch.testing.assert_close(wave, expected, rtol=0, atol=2 * ONE_STEP)
        assert (plain[0] - expected).abs().max() > 0.01


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("FastPitch WaveGlow --wn-channels 512", "WaveGlow_checkpoint_1.pt has 8"),
        ("FastPitch WaveGlow HiFi-GAN", "--hifigan and --waveglow do the same job; give one of them"),
    ],
)
def test_options_that_a_model_does_not_support_are_refused(speak: Speak, words: str, message: str):
    assert message in refused(speak, *words.split())


@pytest.mark.parametrize(
    "words", ["Tacotron2 --speaker 1", "Tacotron2 --compile", "FastPitch HiFi-GAN --sigma-infer 0.7"]
)
def test_options_of_other_models_do_not_exist(speak: Speak, words: str, capsys: pytest.CaptureFixture[str]):
    *models, option, value = words.split() if words[-1].isdigit() else [*words.split(), ""]
    with pytest.raises(SystemExit) as caught:
        speak(*models, option, *filter(None, [value]))
    assert caught.value.code == 2 and not (speak.folder / "out").exists()
    assert f"error: {option}: not an option of {models[0]}" in capsys.readouterr().err


def test_a_tacotron_2_that_is_pickled_whole_speaks_and_half_precision_is_read(goldens: Path, tmp_path: Path):
    folder = goldens / "tacotron2"
    network = published(folder)
    for name, stored in (("model", network), ("state_dict", network.half().state_dict())):
        torch.save({name: stored}, tmp_path / f"{name}.pt")
    network.float()
    wanted = load_checkpoint(first_matching("tacotron2/checkpoints/checkpoint_Tacotron2_[0-9]*.pt"), training=False)
    for name in ("model", "state_dict"):
        checkpoint = load_checkpoint(tmp_path / f"{name}.pt", training=False)
        assert (checkpoint.model, checkpoint.audio) == ("Tacotron2", wanted.audio)
        assert checkpoint.text == wanted.text and checkpoint.assumed == wanted.assumed
        steps = checkpoint.config.max_decoder_steps  # no weight shows it
        assert checkpoint.config == dataclasses.replace(wanted.config, max_decoder_steps=steps)
        state = checkpoint.networks["tacotron2"]
        assert {value.dtype for value in state.values()} == {torch.float32, torch.int64}
        torch.testing.assert_close(state, dict(network.state_dict()), rtol=0, atol=0)
        (tmp_path / "list.txt").write_text("Go on.\n")
        words = f"-i {tmp_path}/list.txt -o {tmp_path / name} --no-audio --save-mels --max-decoder-steps 5"
        inference.main([*words.split(), "--tacotron2", str(tmp_path / f"{name}.pt")])
        mel = torch.load(tmp_path / name / "mels" / "audio_0001.pt")
        assert mel.size(0) == network.config.n_mel_channels and mel.isfinite().all()
