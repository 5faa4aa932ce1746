"""Inference from the command line: what is spoken, how it can be controlled, and that batches change nothing."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
import tiny_voice
import torch
from tiny_voice import MEAN, STD
from torch import Tensor

import inference
from common.audio.mel import griffin_lim
from common.audio.wav import load_wav
from common.checkpoints.checkpoint import Checkpoint, save_checkpoint
from common.config import AudioConfig
from common.logger import read_log
from common.synthesis.utterances import Controls, MelOutput
from common.text.config import TextConfig
from common.text.front_end import TextFrontEnd
from common.torch_file import save_tensor
from fastpitch.custom_transforms import pitch_transform_custom
from fastpitch.model import FastPitch

AUDIO = AudioConfig(hop_length=200, n_mels=40)
TEXT = TextConfig(speakers=("ann", "bob", "cy"))
MODEL = dataclasses.replace(tiny_voice.MODEL, n_mel_channels=40, energy_conditioning=False, n_speakers=3)
TEXTS = ("Go on.", "A longer sentence than the others, by far.", "Not so long.", "Hm?", "Words, words, words.")


@pytest.fixture(scope="module")
def network() -> FastPitch:
    return tiny_voice.new_voice(MODEL, AUDIO, TEXT, seed=0)


@pytest.fixture(scope="module")
def averaged() -> FastPitch:
    return tiny_voice.new_voice(MODEL, AUDIO, TEXT, seed=1)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory, network: FastPitch, averaged: FastPitch) -> Path:
    path = tmp_path_factory.mktemp("voice") / "FastPitch_checkpoint_1.pt"
    weights, ema = {"fastpitch": network.state_dict()}, {"fastpitch": averaged.state_dict()}
    save_checkpoint(path, Checkpoint("FastPitch", MODEL, AUDIO, TEXT, weights, ema=ema))
    return path


Speak = Callable[..., dict[str, Tensor]]


@pytest.fixture
def speak(tmp_path: Path, checkpoint: Path) -> Speak:
    """Run inference.py on lines of a list; returns the mels by the outputs' names, and leaves wavs in tmp_path/out.

    The raw weights speak, unless ``weights`` are other options.
    """

    def run(lines: list[str], *options: str, voice: bool = True, weights: tuple[str, ...] = ("--no-ema",)):
        phrases = tmp_path / "phrases.tsv"
        phrases.write_text("\n".join(lines) + "\n", encoding="utf-8")
        folder = tmp_path / "out"
        argv = ["-i", str(phrases), "-o", str(folder), "--save-mels", "--dataset-path", str(tmp_path), *options]
        if voice:
            argv += ["--fastpitch", str(checkpoint), *weights]
        if "--griffin-lim-iters" not in options:
            argv += ["--no-audio"]
        assert inference.main(argv) == 0
        return {path.stem: torch.load(path) for path in (folder / "mels").glob("*.pt")}

    return run


def encode(text: str) -> Tensor:
    return torch.tensor([TextFrontEnd(TEXT).encode(text)])


@torch.no_grad()
def truth(network: FastPitch, text: str, **controls) -> MelOutput:
    """The utterance alone, straight from the network."""
    tokens = encode(text)
    return network.infer(tokens, torch.tensor([tokens.size(1)]), Controls(**controls))


def numbered(texts: tuple[str, ...]) -> list[str]:
    return ["output\ttext", *(f"{place}.wav\t{text}" for place, text in enumerate(texts))]


def close(first: Tensor, second: Tensor, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(first, second, rtol=0, atol=tolerance)


def test_each_text_is_spoken_under_its_name_whatever_its_batch_and_place(speak, network):
    expected = {str(place): truth(network, text).mel[0] for place, text in enumerate(TEXTS)}
    for batch_size in (1, 2, 64):
        for order in (1, -1):
            mels = speak([*numbered(TEXTS)[:1], *numbered(TEXTS)[1:][::order]], "--batch-size", str(batch_size))
            assert mels.keys() == expected.keys()
            for name, mel in mels.items():
                close(mel, expected[name])


def test_the_wav_is_griffin_lim_of_the_mel_and_fades_out(speak, tmp_path):
    mels = speak(["a.wav|Good day."], "--griffin-lim-iters", "5", "--seed", "7", "--fade-out", "4")
    wave = load_wav(tmp_path / "out" / "a.wav", sampling_rate=22050)
    expected = griffin_lim(mels["a"], AUDIO, n_iter=5, seed=7)
    expected /= max(1.0, float(expected.abs().max()))
    expected[-4 * 200 :] *= torch.linspace(1, 0, 4 * 200)
    assert len(wave) == mels["a"].size(1) * 200
    close(wave, expected, 1 / 32768)


TRANSFORMS = {
    "--pitch-transform-flatten": lambda pitch: pitch * 0,
    "--pitch-transform-invert": lambda pitch: -pitch,
    "--pitch-transform-amplify 0": lambda pitch: pitch * 0,
    "--pitch-transform-custom": lambda pitch: (
        (pitch_transform_custom(pitch * STD + MEAN, torch.tensor([pitch.size(1)])) - MEAN) / STD
    ),
    "--pitch-transform-shift 20 --pitch-transform-invert --pitch-transform-amplify 3": lambda p: -p * 3 + 20 / STD,
}


@pytest.mark.parametrize("options", TRANSFORMS)
def test_pitch_transforms_change_the_spoken_pitch(speak, network, options):
    mels = speak(numbered(TEXTS[1:3]), *options.split())
    for place, text in enumerate(TEXTS[1:3]):
        pitch = truth(network, text).pitch
        expected = truth(network, text, pitch=TRANSFORMS[options](pitch)).mel[0]
        close(mels[str(place)], expected)
        assert (expected - truth(network, text).mel[0]).abs().max() > 1e-3


def test_speakers_are_chosen_by_number_or_name_for_all_or_for_each(speak, network):
    for speaker, number in (("2", 2), ("bob", 1)):
        close(speak([f"a|{TEXTS[0]}"], "--speaker", speaker)["a"], truth(network, TEXTS[0], speaker=number).mel[0])
    lines = ["output\ttext\tspeaker", *(f"{name}\t{TEXTS[0]}\t{name}" for name in ("ann", "bob", "2"))]
    mels = speak(lines)
    for name, number in (("ann", 0), ("bob", 1), ("2", 2)):
        close(mels[name], truth(network, TEXTS[0], speaker=number).mel[0])


def test_pitch_and_durations_of_the_list_are_spoken_instead_of_predicted_ones(speak, network, tmp_path):
    lines = ["output\ttext\tpitch\tduration"]
    expected = {}
    for place, text in enumerate(TEXTS):
        n_tokens = encode(text).size(1)
        pitch, durations = torch.randn(n_tokens), torch.randint(1, 6, (n_tokens,))
        save_tensor(tmp_path / f"pitch_char/{place}.pt", pitch)
        save_tensor(tmp_path / f"durations/{place}.pt", durations)
        lines.append(f"{place}\t{text}\tpitch_char/{place}.pt\tdurations/{place}.pt")
        expected[str(place)] = truth(network, text, pitch=pitch[None], durations=durations[None].float()).mel[0]
    for name, mel in speak(lines).items():
        close(mel, expected[name])


def test_the_averaged_weights_speak_unless_told_otherwise_and_one_line_says_so(
    speak, network, averaged, checkpoint, capsys
):
    line = f"using the EMA weights of {checkpoint}; --no-ema for the raw ones\n"
    for weights, speaking, said in (((), averaged, 1), (("--ema",), averaged, 0), (("--no-ema",), network, 0)):
        close(speak([f"a|{TEXTS[0]}"], weights=weights)["a"], truth(speaking, TEXTS[0]).mel[0])
        assert capsys.readouterr().err.count(line) == said


def test_torchscript_speaks_the_same_with_every_control(speak):
    options = ("--pitch-transform-shift", "15", "--pace", "1.3", "--speaker", "1")
    mels = speak(numbered(TEXTS), *options)
    for name, mel in speak(numbered(TEXTS), *options, "--torchscript").items():
        close(mel, mels[name])


@torch.no_grad()
def test_mels_that_are_padded_to_few_lengths_are_the_same(network):
    tokens, lengths = torch.randint(1, 100, (2, 24)), torch.tensor([24, 11])
    out, plain = (network.infer(tokens, lengths, Controls(frame_step=step)) for step in (32, 1))
    n_frames = plain.mel.size(2)
    assert out.mel.size(2) % 32 == 0 and out.mel.size(2) > n_frames and torch.equal(out.lengths, plain.lengths)
    close(out.mel, torch.nn.functional.pad(plain.mel, (0, out.mel.size(2) - n_frames)))


def test_the_log_has_the_figures_of_each_batch_and_of_the_run(speak, tmp_path, capsys):
    speak(numbered(TEXTS), "--griffin-lim-iters", "2", "-bs", "2", "--include-warmup", "--benchmark")
    records = read_log(tmp_path / "out" / "nvlog_infer.json")
    data = [record["data"] for record in records if record["type"] == "LOG"]
    assert data[0]["batch_size"] == 2 and data[0]["warmup_steps"] == 3
    batches = [figures for figures in data if "latency" in figures]
    keys = {"generator_frames/s", "mel_gen_frames/s", "generator_latency", "griffin_lim_samples/s"}
    assert len(batches) == 3 and keys < batches[0].keys()
    summary = {key: value for figures in data[1 + len(batches) :] for key, value in figures.items()}
    latencies = torch.tensor([figures["latency"] for figures in batches])
    assert summary["avg_latency"] == pytest.approx(float(latencies.mean()), rel=1e-5)
    samples = sum(torch.load(path).size(1) * 200 for path in (tmp_path / "out" / "mels").glob("*.pt"))
    assert summary["avg_samples/s"] == pytest.approx(samples / float(latencies.sum()), rel=1e-5)
    assert summary["avg_RTF@2"] == pytest.approx(samples / 22050 / float(latencies.sum()), rel=1e-5)
    shown = capsys.readouterr().out
    lines = [line for line in shown.splitlines() if "99% latency" in line]
    assert len(lines) == 1 and lines[0].startswith("DLL ") and lines[0].endswith(" s")
    assert summary["avg_mel_gen_frames/s"] == summary["avg_generator_frames/s"]  # another recipe's name for it
    assert "avg generator frames/s" in shown and "mel gen" not in shown
    assert "avg speed in real time" in shown and "avg RTF" not in shown  # whose figure in the log is the inverse
