"""A vocoder alone is measured by copies of recordings, beside these and Griffin-Lim, by measures that hold."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
import torch
from page_reader import PageReader
from tiny_evaluation import AUDIO, make_checkpoints, save_vocoder, write_recordings

from common.audio.wav import load_wav, resample
from common.errors import CheckpointError, InputError, OptionError
from common.evaluation import judges
from scripts import evaluate_voice

RATE = 22050  # Hz
LINES = ("output\twav\ttext", "a.wav\ta.wav\tGo on.", "b.wav\tb.wav\tNot so long.")


def noise(n_samples: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(n_samples).astype(np.float32)


class Echo:
    """A Whisper that hears the same words in everything."""

    supported_languages = ("en", "de", "zh")

    def __init__(self, name: str, **_: object) -> None:
        if name not in ("base", "small"):
            raise ValueError("no such size")

    def transcribe(self, samples: np.ndarray, **_: object):
        return iter([SimpleNamespace(text=" Go, the"), SimpleNamespace(text="boat.")]), None


class Opinion(torch.nn.Module):
    """A DistillMOS whose score is the first sample of a crop."""

    def forward(self, wave: torch.Tensor) -> torch.Tensor:
        return wave[:, 0]


def letters(text: str) -> str:
    return "".join(c for c in text.lower() if c.isalnum() or c == " ")


FAKES = {
    "faster_whisper": SimpleNamespace(WhisperModel=Echo),
    "whisper_normalizer": SimpleNamespace(),
    "whisper_normalizer.english": SimpleNamespace(EnglishTextNormalizer=lambda: letters),
    "whisper_normalizer.basic": SimpleNamespace(
        BasicTextNormalizer=lambda split_letters, preserve_marks: " ".join if split_letters else letters
    ),
    "distillmos.sqa": SimpleNamespace(SEQ_LEN=1000, MAX_HOP_LEN=400, ConvTransformerSQAModel=Opinion),
    "resemblyzer": SimpleNamespace(
        preprocess_wav=lambda wave: wave,
        VoiceEncoder=lambda device, verbose: SimpleNamespace(embed_utterance=lambda wave: np.array([0.6, 0.8])),
    ),
}


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch):
    """Let there be no other packages than these, which are `FAKES`."""

    def only(*names: str) -> None:
        for name, fake in FAKES.items():
            monkeypatch.setitem(sys.modules, name, fake)
        monkeypatch.setattr(judges, "find_spec", lambda name: name if name in names else None)

    return only


@pytest.fixture
def evaluate(tmp_path: Path, only):
    """Evaluate a vocoder on the lines of a list of two recordings, into tmp_path/out; without judges."""
    only()
    write_recordings(tmp_path, ["a.wav", "b.wav"])
    save_vocoder(tmp_path / "vocoder.pt", AUDIO)

    def evaluate(*words: object, vocoder: object = tmp_path / "vocoder.pt", lines: tuple[str, ...] = LINES) -> int:
        (tmp_path / "list.tsv").write_text("".join(f"{line}\n" for line in lines))
        argv = [vocoder, *words, tmp_path / "list.tsv", "-o", tmp_path / "out", "--dataset-path", tmp_path]
        return evaluate_voice.main([str(word) for word in argv])

    return evaluate


def results(folder: Path) -> dict:
    return json.loads((folder / "out/evaluation.json").read_text(), parse_constant=pytest.fail)  # strict JSON


def test_a_vocoder_stands_beside_the_recordings_and_griffin_lim(evaluate, only, tmp_path, capsys):
    only(*judges.PACKAGES)
    assert evaluate() == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines if not line.startswith(("note", "report", "figures"))) <= 80
    assert ["average", "synthesized", "recording", "griffin-lim"] in [line.split() for line in lines]
    found = results(tmp_path)
    means = {"vocoder": found["averages"], **found["averages_beside"]}
    assert means["recording"]["real_time_factor"] is means["recording"]["mel_distance"] is None
    assert 0 < means["griffin-lim"]["mel_distance"] < means["vocoder"]["mel_distance"]
    assert means["griffin-lim"]["real_time_factor"] > 0 and means["vocoder"]["wer"] > 0
    assert all(one["likeness"] == pytest.approx(1) and one["mos"] is not None for one in means.values())
    away = found["differences"]["griffin-lim"]["mel_distance"]
    assert 0 < away["low"] <= away["value"] <= away["high"] and "duration" not in found["differences"]["griffin-lim"]
    assert away["value"] == pytest.approx(means["vocoder"]["mel_distance"] - means["griffin-lim"]["mel_distance"])
    first = found["utterances"][0]
    assert first["beside"]["griffin-lim"]["heard"] == "go the boat" and first["reference"] == "go on"
    page = PageReader((tmp_path / "out/index.html").read_text())
    assert len(page.sources["audio"]) == 6 and len(page.sources["img"]) == 2
    assert [row[0][0] for row in page.tables[2].rows] == ["a.wav", "b.wav"]
    frames = {soundfile.info(tmp_path / "out" / name / "a.wav").frames for name in ("griffin-lim", "synthesised")}
    assert len(frames) == 1
    assert evaluate() == 0
    assert "2 of 2 utterances are from an earlier run" in capsys.readouterr().out
    assert results(tmp_path)["utterances"] == found["utterances"]


def test_mistakes_of_copies_are_one_line(evaluate, only, tmp_path):
    only("faster_whisper")
    for lines, words, error, message in (
        (("output\twav", "a.wav\tno.wav"), (), InputError, r"no\.wav: no such file .*list\.tsv:2"),
        (("x.wav|Go on.",), (), InputError, r"list\.tsv:1: no recording to copy; give a column wav, or --recordings"),
        (("output\tmel", "x.wav\ta.pt"), (), InputError, r"list\.tsv:2: no recording to copy"),
        (LINES, ("--whisper", "nonsense"), OptionError, "--whisper nonsense: .*no such size"),
        (LINES, ("--language", "xx"), OptionError, "--language 'xx': .*one of en, de, zh"),
    ):
        with pytest.raises(error, match=message):
            evaluate(*words, lines=lines)
    with pytest.raises(CheckpointError, match="a checkpoint of FastPitch, expected one of"):
        evaluate(vocoder=make_checkpoints(tmp_path).voice)
    write_recordings(tmp_path, ["a.wav"], rate=16000)
    with pytest.raises(InputError, match=r"a\.wav: 16000 Hz, expected 22050; .*list\.tsv:2"):
        evaluate()
    assert not (tmp_path / "out").exists()


def test_the_real_models_find_recordings_right_good_and_alike(shared_data):
    for name in ("faster_whisper", "whisper_normalizer", *judges.PACKAGED, "distillmos", "resemblyzer"):
        if find_spec(name) is None:
            pytest.skip(f"no {name}")
    lines = (shared_data / "LJSpeech-sample/metadata.csv").read_text(encoding="utf-8").splitlines()
    path, text = shared_data / "LJSpeech-sample/wavs/LJ001-0008.wav", lines[7].split("|")[2]
    wave = load_wav(path, sampling_rate=RATE)
    recognizer = judges.Whisper.load("base", "en")
    (found,) = recognizer.transcribe(wave, sampling_rate=RATE)
    assert found.text == recognizer.normalize(text) == "has never been surpassed"
    low = resample(wave, ratio=judges.RATE / RATE)
    assert judges.load_distillmos()(low) > 4 > 2.5 > judges.load_distillmos()(0.05 * torch.from_numpy(noise(16000)))
    embed = judges.load_speaker_encoder()
    assert np.linalg.norm(embed(low)) == pytest.approx(1, abs=1e-3) and embed(torch.zeros(16000)) == []
