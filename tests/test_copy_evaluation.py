"""A vocoder alone is measured by copies of recordings, beside these and Griffin-Lim, by measures that hold."""

import json
import math
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
from common.errors import AudioError, CheckpointError, InputError, OptionError
from common.evaluation import judges
from common.evaluation.metrics import N_COEFFICIENTS, Clip, Figures, aligned, mean_distortion, speech_pairs
from common.evaluation.results import MEASURES, Result, Summary, add_likeness, find_difference
from scripts import evaluate_voice

RATE = 22050  # Hz
LINES = ("output\twav\ttext", "a.wav\ta.wav\tGo on.", "b.wav\tb.wav\tNot so long.")


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
    noise = 0.05 * torch.randn(16000, generator=torch.Generator().manual_seed(0))
    assert judges.load_distillmos()(low) > 4 > 2.5 > judges.load_distillmos()(noise)
    embed = judges.load_speaker_encoder()
    assert np.linalg.norm(embed(low)) == pytest.approx(1, abs=1e-3) and embed(torch.zeros(16000)) == []


def vowels(f0: float, *, seconds: float = 1.2, pause: float = 0.0) -> np.ndarray:
    """Three vowels on one note, with a pause before the last, in a still envelope each."""
    pieces = []
    for first, second in ((700, 1200), (300, 2300), (450, 900)):
        t = np.arange(round(seconds / 3 * RATE)) / RATE
        wave = np.zeros(len(t))
        for k in range(1, int(4000 / f0)):
            gain = sum(math.exp(-(((k * f0 - formant) / 200) ** 2)) for formant in (first, second)) + 0.01
            wave += gain * np.cos(2 * math.pi * k * f0 * t)
        pieces.append(0.05 * wave)
    pieces.insert(2, np.zeros(round(pause * RATE)))
    return np.concatenate(pieces).astype(np.float32)


def compare(reference: np.ndarray, synthesized: np.ndarray) -> Figures:
    return aligned(Clip(reference, RATE), Clip(synthesized, RATE)).distance


def distortion(reference: np.ndarray, synthesized: np.ndarray) -> float:
    left, right = (np.maximum(one - one.max(), -60 * math.log(10) / 20) for one in (reference, synthesized))
    return mean_distortion(left, right, speech_pairs(left, right))


@pytest.mark.parametrize(("cents", "f0"), [(100, 140.0), (-100, 140.0), (100, 220.0), (250, 110.0)])
def test_a_note_so_many_cents_away_is_so_many_cents_away(cents, f0):
    distance = compare(vowels(f0), vowels(f0 * 2 ** (cents / 1200)))
    assert distance["f0_rmse_cents"] == pytest.approx(abs(cents), abs=2)
    assert distance["f0_rmse_hz"] == pytest.approx(f0 * abs(2 ** (cents / 1200) - 1), rel=0.03)
    assert distance["voicing_error"] < 0.05


def test_a_wave_is_at_no_distance_from_itself_however_loud_or_padded_with_silence():
    wave = vowels(140)
    same, quiet = compare(wave, wave), compare(wave, 0.1 * wave)
    assert set(same.values()) == {0}
    assert quiet["mcd_db"] < 1e-3 and quiet["f0_rmse_cents"] < 0.1
    padded = np.concatenate([np.zeros(RATE // 2), wave, np.zeros(RATE // 3)])
    assert compare(wave, padded)["mcd_db"] < 0.3


def test_distortion_is_in_decibels_and_slowing_by_repeated_frames_does_not_count():
    log_mel = np.cumsum(np.random.default_rng(1).standard_normal((80, 60)), axis=0) / 8
    uneven = np.repeat(log_mel, np.random.default_rng(2).integers(1, 5, log_mel.shape[1]), axis=1)
    assert distortion(uneven, log_mel) == pytest.approx(0, abs=1e-9)
    rng, position = np.random.default_rng(3), (np.arange(80) + 0.5) / 80
    ripple = sum(rng.normal() * np.cos(math.pi * k * position) for k in range(1, N_COEFFICIENTS + 1)) / 200
    still = np.repeat(log_mel[:, :1], 20, axis=1)
    decibels = math.sqrt(np.mean((20 / math.log(10) * ripple) ** 2))
    assert distortion(still, still + ripple[:, None]) == pytest.approx(decibels, rel=1e-6)


@pytest.mark.parametrize("bad", [np.zeros(0), np.zeros(1000), np.full(1000, np.nan)])
def test_a_wave_that_cannot_be_compared_is_refused(bad):
    with pytest.raises(AudioError):
        compare(vowels(140), bad)


@pytest.fixture
def three() -> list[Result]:
    first = {"wer": 1.0, "n_words": 1, "cer": 0.5, "n_chars": 2, "mcd_db": 2.0, "f0_rmse_cents": 50.0}
    second = {"wer": 0.0, "n_words": 8, "cer": 0.0, "n_chars": 33, "mcd_db": 4.0, "duration": 3.0}
    return [
        Result("a.wav", "Text.", figures=first | {"duration": 1.0, "real_time_factor": 1.0}),
        Result("b.wav", "Text.", figures=second | {"real_time_factor": 0.5 / 3}),
        Result("c.wav", "Text.", error="c: broken", beside=[Result("recording", "Text.", figures={"mcd_db": 0.25})]),
    ]


def test_error_rates_are_those_of_the_whole_list_and_others_means_of_what_is_there(three):
    averages = Summary.of(three).averages
    means = averages[""]
    assert means["wer"] == pytest.approx(1 / 9) and means["cer"] == pytest.approx(1 / 35)
    assert means["mcd_db"] == 3.0
    assert means["f0_rmse_cents"] == 50.0  # b.wav has no frames that are voiced in both
    assert means["real_time_factor"] == pytest.approx(1.5 / 4)
    assert Summary.of([]).averages[""]["mcd_db"] is None and averages["recording"]["mcd_db"] == 0.25


@pytest.mark.parametrize(("key", "weight"), [("mos", None), ("wer", "n_words")])
def test_an_interval_is_that_of_averages_of_utterances_drawn_in_pairs(key, weight):
    rng = np.random.default_rng(1)
    sides = rng.normal(3, 1, (2, 30)) + rng.normal(0, 2, 30)  # what both share is no difference
    weights = rng.integers(1, 20, 30) if weight else np.ones(30)
    rows = [[{key: value, "n_words": n} for value, n in zip(side, weights)] for side in sides]
    found = find_difference(MEASURES[key], list(zip(*rows)))
    drawn = [rng.integers(30, size=30) for _ in range(4000)]
    slow = [np.average((sides[0] - sides[1])[one], weights=weights[one]) for one in drawn]
    assert found.value == pytest.approx(np.average(sides[0] - sides[1], weights=weights))
    assert (found.low, found.high) == pytest.approx(np.percentile(slow, [2.5, 97.5]), abs=0.1)
    assert found == find_difference(MEASURES[key], list(zip(*rows)))
    same = find_difference(MEASURES[key], [(one, one) for one in rows[0]])
    assert (same.value, same.low, same.high, same.is_clear) == (0, 0, 0, False)


def test_likeness_is_that_to_the_speakers_recordings_of_other_utterances():
    def spoken(name: str, speaker: str, made: list[float], recorded: list[float]) -> Result:
        beside = [Result("recording", "", embedding=recorded)] if recorded else []
        return Result(name, "", speaker=speaker, embedding=made, beside=beside)

    results = [
        spoken("a", "ann", [1.0, 0.0], [1.0, 0.0]),
        spoken("b", "ann", [1.0, 0.0], [0.0, 1.0]),
        spoken("c", "ann", [0.6, 0.8], []),
        spoken("d", "bob", [0.6, 0.8], [0.0, 1.0]),  # his only recording
        spoken("e", "eve", [0.6, 0.8], []),
    ]
    add_likeness(results)
    found = [one.figures.get("likeness") for one in results]
    assert found == [0, 1, pytest.approx(1.4 / math.sqrt(2)), pytest.approx(0.8), None]
    assert [one.figures.get("likeness") for result in results for one in result.beside] == [0, 0, None]
