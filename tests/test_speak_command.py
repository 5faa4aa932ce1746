"""inference.py with one text: files, standard input and output, files beside the sound, and prosody tables."""

import io
import json
import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import soundfile
import torch
from tiny_voice import MODEL, save_vocoder, save_voice

import inference
from common import plots
from common.audio.wav import load_wav
from common.cli import run
from common.synthesis.loading import load_voice
from common.synthesis.speech import parse_prosody
from common.text.config import TextConfig
from common.text.front_end import TextFrontEnd

TEXT = "Go on. It is late, my friend."


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("models")
    voice, vocoder = save_voice(folder / "FastPitch.pt"), save_vocoder(folder / "HiFi-GAN.pt")
    return ["--fastpitch", str(voice), "--hifigan", str(vocoder)]


@pytest.fixture(scope="module")
def wave(models: list[str]) -> torch.Tensor:
    """What the voice says of the text."""
    return load_voice(models[1], models[3], device="cpu").speak(TEXT).wave


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """Sets what standard input gives."""
    return lambda content: monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_a_text_becomes_the_file_that_is_named(models, wave, tmp_path, capsys):
    assert inference.main([*models, "--text", TEXT, "-o", str(tmp_path / "new" / "hello.wav")]) == 0
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["hello.wav"]
    torch.testing.assert_close(load_wav(tmp_path / "new/hello.wav", sampling_rate=22050), wave, rtol=0, atol=2**-15)
    assert f"{tmp_path}/new/hello.wav: {len(wave) / 22050:.2f} s" in capsys.readouterr().out


def test_standard_output_gets_the_sound_alone_and_messages_go_elsewhere(models, wave, stdin, capfdbinary):
    stdin(TEXT.encode())
    assert inference.main([*models, "-o", "-", "-i", "-"]) == 0
    samples, rate = soundfile.read(io.BytesIO(capfdbinary.readouterr().out), dtype="int16")
    assert rate == 22050
    torch.testing.assert_close(torch.tensor(samples / 32768.0).float(), wave, rtol=0, atol=2**-14)


def test_subtitles_prosody_and_mels_stand_beside_the_sound(models, wave, tmp_path):
    extras = "--subtitles vtt --save-prosody --save-mels".split()
    inference.main([*models, "--text", TEXT, "-o", str(tmp_path / "a.wav"), *extras])
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {"a.wav", "a.vtt", "a.prosody.json", "mels/a.pt", "mels/audio.json"}
    assert (tmp_path / "a.vtt").read_text().startswith("WEBVTT")
    mel = torch.load(tmp_path / "mels" / "a.pt", weights_only=True)
    assert mel.size(1) * 256 == len(wave)


def test_a_plot_beside_the_sound_labels_every_symbol_that_is_heard(models, tmp_path, monkeypatch):
    drawn, plot = [], plots.plot_utterance
    monkeypatch.setattr(
        plots, "plot_utterance", lambda *args, **kwargs: drawn.append(plot(*args, **kwargs)) or drawn[-1]
    )
    inference.main([*models, "--text", TEXT, "-o", str(tmp_path / "a.wav"), "--plots", "--save-prosody"])
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    (figure,) = drawn
    mel, pitch = figure.axes
    assert figure.get_suptitle() == TEXT
    spoken = parse_prosody(json.loads((tmp_path / "a.prosody.json").read_text()), where="a").utterances
    symbols = [one for utterance in spoken for one in utterance.symbols]
    labels = [label.get_text().strip("\n") for label in mel.get_xticklabels(minor=True)]
    assert [label.replace("\u2423", " ") for label in labels if label] == [one.symbol for one in symbols if one.frames]
    spoken_with = next(line for line in pitch.lines if line.get_label() == "model").get_ydata()
    assert np.isfinite(spoken_with).sum() == sum(one.frames for one in symbols if one.pitch)


@pytest.mark.parametrize("plain, words", [([], ["on.", "at five pm."]), (["--plain"], ["- on - at five pm"])])
def test_show_prints_what_will_be_said_and_speaks_nothing(models, tmp_path, monkeypatch, capsys, plain, words):
    monkeypatch.chdir(tmp_path)
    assert inference.main([*models, "--text", "- on\n- at 5 pm", "--show", *plain]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-len(words) :] == words and not list(tmp_path.iterdir())


@pytest.mark.parametrize(("options", "p_arpabet"), [((), 1.0), (("--p-arpabet", "0"), 0.0)])
def test_a_voice_trained_with_any_phones_gets_all_of_them(tmp_path, options, p_arpabet):
    text = TextConfig(cleaners=("english_cleaners_v3",), p_arpabet=0.5)
    voice = save_voice(tmp_path / "a.pt", text=text, model=replace(MODEL, n_symbols=148, n_speakers=1))
    words = ["--fastpitch", str(voice), "--text", TEXT, "-o", str(tmp_path / "a.wav"), "--save-prosody", "--no-audio"]
    assert inference.main([*words, *options]) == 0
    utterances = json.loads((tmp_path / "a.prosody.json").read_text())["utterances"]
    symbols = [symbol["symbol"] for one in utterances for word in one["words"] for symbol in word["symbols"]]
    front_end = TextFrontEnd(replace(text, p_arpabet=p_arpabet))
    expected = [front_end.symbols[index] for one in utterances for index in front_end.encode(one["text"])]
    assert symbols == expected


def test_long_lines_and_markup_of_a_list_are_spoken_as_one_file_each(models, tmp_path):
    long = "It was a dark night, and the wind blew. " * 12
    (tmp_path / "list.txt").write_text(f'a.wav|{long}\nb.wav|Go <break time="1s"/> on.\nc.wav|Go on.\n')
    inference.main([*models, "-i", str(tmp_path / "list.txt"), "-o", str(tmp_path / "out"), "--save-prosody"])
    assert sorted(path.name for path in (tmp_path / "out").glob("*.wav")) == ["a.wav", "b.wav", "c.wav"]

    def parts(name: str) -> list[dict]:
        return json.loads((tmp_path / "out" / f"{name}.prosody.json").read_text())["utterances"]

    assert [len(parts(name)) for name in ("a", "b", "c")] == [2, 2, 1]
    assert max(len(one["text"]) for one in parts("a")) <= 400


@pytest.mark.parametrize(
    ("words", "status", "reason"),
    [
        ("", 2, "give one of --input, --text and --prosody, got none"),
        ("--text Go. -i list.txt", 2, "got --input and --text"),
        ("-i list.txt -o out.wav", 2, "expected a folder"),
        ("--text <nothing/><break/> -o a.wav", 1, "--text"),
        ("--text Go. --speaker carol -o a.wav", 1, "speaker 'carol'"),
    ],
)
def test_what_cannot_be_done_is_one_line(models, tmp_path, words, status, reason, monkeypatch, capsys):
    (tmp_path / "list.txt").write_text("Go on.\n")
    monkeypatch.chdir(tmp_path)
    output = [] if "-o" in words else ["-o", "out"]
    monkeypatch.setattr(sys, "argv", ["inference.py", *models, *words.split(), *output])
    with pytest.raises(SystemExit) as ended:
        run(inference.main)
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert (ended.value.code, reason in line) == (status, True), line
