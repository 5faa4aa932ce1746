"""The measure of a learned alignment: errors that are planted are the errors that it reports."""

import argparse
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from shell import ROOT

from common.audio import MelExtractor
from common.checkpoints import Checkpoint, save_checkpoint
from common.config import AudioConfig, TextConfig, to_plain
from common.errors import InputError
from common.extraction.textgrid import fit, read_alignment
from common.text import Interval, Speaker, TextFrontEnd
from fastpitch.aligner import Alignment, ConvAttention
from fastpitch.model import ModelConfig, build_networks
from scripts.datasets.make_corpus import SENTENCES, make_corpus, read_sentences
from scripts.demos import align_accuracy
from scripts.demos.align_accuracy import (
    SETS,
    Found,
    accuracy,
    align,
    boundary_times,
    errors_ms,
    kind_of,
    nearest_times,
    phones_list,
    prepare,
    report,
)

AUDIO = AudioConfig()
FRAME_S = AUDIO.hop_length / AUDIO.sampling_rate
TEXTS = ["Stop.", "A narrow path climbs; stop there.", "The end is near."]
FRAMINGS = (AUDIO, replace(AUDIO, framing="aligned", hop_length=200))


def found(error_s: np.ndarray, phones: tuple[str, ...]) -> Found:
    """A clip whose boundaries, 0.1 s apart, are found with those errors."""
    true_times = 0.1 * np.arange(1, len(phones))
    return Found(phones, true_times + error_s, true_times, 0.5, 1)


def test_figures_are_those_of_the_planted_errors():
    first = found(np.array([0.01, -0.03, 0.0]), ("sil", "s", "a", "sil"))
    second = found(np.array([0.06]), ("a", "sil"))
    figures = accuracy(errors_ms([first, second]))
    assert figures["n_boundaries"] == 4
    assert [figures[name] for name in ("mean_error", "median_error", "bias")] == pytest.approx([25, 20, 10])
    assert figures["error_95"] == pytest.approx(30 + 0.85 * 30)
    assert (figures["within_20_ms"], figures["within_50_ms"]) == (0.5, 0.75)


def test_the_report_has_all_sets_and_kinds_and_says_what_a_frame_allows(capsys: pytest.CaptureFixture):
    clips = {
        "training": [found(np.array([0.01, -0.03]), ("sil", "t͡ʃ", "ɑ"))],
        "held out": [found(np.array([0.038, 0.022]), ("sil", "t͡ʃ", "m"))],
    }
    figures = report(clips, AUDIO)
    boundaries = figures["boundaries_ms"]
    means = {name: row["mean_error"] for name, row in boundaries.items()}
    assert means == pytest.approx(
        {"all": 25, "training": 20, "held out": 30, "silence-stop": 24, "stop-vowel": 30, "stop-sonorant": 22}
    )
    assert figures["attention"]["training"] == {"diagonality": 0.5, "unattended_tokens": pytest.approx(1 / 3)}
    assert figures["frame_ms"] == pytest.approx(11.61, abs=0.01)
    assert 0 < figures["least_error_ms"] <= figures["frame_ms"] / 2
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["all", "4", "25.0", "26.0", "36.8", "+10.0", "25.0", "%", "100.0", "%"]
    assert "held out: diagonality 0.50, 33.33 % of phones without a frame" in lines


@pytest.mark.parametrize(
    ("phones", "kind"),
    [("sil sp", "silence"), ("p t͡ʃ ɡ", "stop"), ("a ə ɨ", "vowel"), ("s ʃ θ h", "fricative"), ("m ɹ ɾ j", "sonorant")],
)
def test_phones_have_kinds(phones: str, kind: str):
    assert {kind_of(phone) for phone in phones.split()} == {kind}


@pytest.mark.parametrize("audio", FRAMINGS, ids=lambda audio: audio.framing)
def test_boundaries_are_where_sounds_change(audio: AudioConfig):
    """A tone that rises or falls at a random time: the frames before, counted, give that time back."""
    generator = np.random.default_rng(0)
    mels = MelExtractor(audio)
    clock = np.arange(audio.sampling_rate) / audio.sampling_rate
    tones = [np.sin(2 * np.pi * frequency * clock) for frequency in (500, 3000)]
    levels = [mels(torch.from_numpy(tone).float()[None])[0].mean(1) for tone in tones]
    errors = []
    for change in generator.uniform(0.2, 0.8, 100):
        for first, second in ((0, 1), (1, 0)):  # together, as a step is heard sooner in wide channels
            mel = mels(torch.from_numpy(np.where(clock < change, tones[first], tones[second])).float()[None])[0]
            like_first, like_second = (
                mel[channel] - level[channel]
                for level in (levels[first], levels[second])
                for channel in [level.argmax()]
            )
            n_first = int((like_first > like_second).sum())
            errors.append(float(boundary_times([n_first, mel.size(1) - n_first], audio)[0]) - change)
    frame_s = audio.hop_length / audio.sampling_rate
    assert np.abs(errors).max() < frame_s
    assert abs(np.mean(errors)) < 0.1 * frame_s


def test_durations_of_textgrids_come_back_without_bias(tmp_path: Path):
    speaker = Speaker()
    make_corpus(tmp_path, sentences=read_sentences(SENTENCES)[:12], speaker=speaker, n_validation=1)
    errors, least = [], []
    for line in (tmp_path / "train.txt").read_text(encoding="utf-8").splitlines():
        wav, text = line.split("|")
        speech = speaker.speak(text)
        path = tmp_path / "TextGrid" / f"{Path(wav).stem}.TextGrid"
        n_frames = MelExtractor(AUDIO).n_frames(len(speech.samples))
        durations = fit(read_alignment(path, AUDIO), n_frames, path=path, config=AUDIO).durations
        times = np.array([phone.end_s for phone in speech.phones[:-1]])
        errors.append(boundary_times(durations, AUDIO) - times)
        least.append(np.abs(nearest_times(times, AUDIO) - times))
    errors, least = np.concatenate(errors), np.concatenate(least)
    assert abs(errors.mean()) < 0.05 * FRAME_S
    assert np.abs(errors).max() < 0.51 * FRAME_S
    assert np.abs(errors).mean() == pytest.approx(least.mean(), rel=1e-3)
    assert least.mean() == pytest.approx(FRAME_S / 4, rel=0.1)


@pytest.fixture(scope="module")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, tuple[Interval, ...]]]:
    """A corpus of three clips, one held out, and the truth."""
    corpus = tmp_path_factory.mktemp("accuracy") / "corpus"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(align_accuracy, "N_VALIDATION", 1)
        return corpus, prepare(corpus, TEXTS, Speaker())


def test_training_is_told_wavs_and_phones_alone(spoken):
    corpus, truth = spoken
    assert not list(corpus.rglob("*TextGrid*"))
    lines = [line for stem in SETS.values() for line in phones_list(corpus, stem).read_text().splitlines()]
    assert len(lines) == len(truth) == 3
    for line in lines:
        wav, phones = line.split("|")
        assert phones.split() == [phone.label for phone in truth[wav]]
        assert (corpus / wav).is_file()


@pytest.fixture
def voice(tmp_path: Path) -> Path:
    """A checkpoint of an untrained voice with an aligner."""
    text = TextConfig(input_type="phone", symbol_set="ipa", cleaners=())
    sizes = dict.fromkeys(("symbols_embedding_dim", "in_fft_output_size", "out_fft_output_size"), 16)
    config = ModelConfig(
        **sizes,
        n_symbols=TextFrontEnd(text).n_symbols,
        symbol_type="phone",
        in_fft_n_layers=1,
        out_fft_n_layers=1,
        learned_alignment=True,
    )
    torch.manual_seed(0)
    network = build_networks(config, AUDIO, text)["fastpitch"]
    network.pitch_mean.fill_(150.0)
    network.pitch_std.fill_(30.0)
    path = tmp_path / "FastPitch_checkpoint_1.pt"
    networks = {"fastpitch": network.state_dict()}
    save_checkpoint(path, Checkpoint("FastPitch", to_plain(config), AUDIO, text, networks))
    return path


def test_a_network_that_finds_frames_shifted_has_that_error(spoken, voice: Path, monkeypatch: pytest.MonkeyPatch):
    """The aligner is replaced by one that knows the truth, but gives the first phone two frames of the second's."""
    corpus, truth = spoken
    stem = SETS["held out"]
    (phones,) = (truth[line.split("|")[0]] for line in phones_list(corpus, stem).read_text().splitlines())
    ends = np.ceil(np.array([phone.end_s for phone in phones]) / FRAME_S).astype(int)

    def planted(self, mels, mel_lengths, embedded, token_lengths, prior) -> Alignment:
        ends[-1] = int(mel_lengths)
        durations = torch.from_numpy(np.diff(ends, prepend=0))[None]
        durations[0, :2] += torch.tensor([2, -2])
        path = torch.repeat_interleave(torch.arange(durations.size(1)), durations[0])[None]
        one_hot = torch.nn.functional.one_hot(path, durations.size(1)).float()
        return Alignment(one_hot.log(), one_hot.log(), path, durations)

    monkeypatch.setattr(ConvAttention, "forward", planted)
    (clip,) = align(voice, corpus=corpus, filelist=phones_list(corpus, stem), truth=truth)
    errors = clip.times - clip.true_times
    assert errors[0] == pytest.approx(2 * FRAME_S, abs=0.51 * FRAME_S)
    assert np.abs(errors[1:]).max() < 0.51 * FRAME_S
    assert clip.n_unattended == 0
    assert clip.diagonality > 0.8


def test_an_untrained_aligner_is_far_off(spoken, voice: Path):
    corpus, truth = spoken
    clips = [
        clip
        for stem in SETS.values()
        for clip in align(voice, corpus=corpus, filelist=phones_list(corpus, stem), truth=truth)
    ]
    assert [len(clip.phones) for clip in clips] == [len(phones) for phones in truth.values()]
    assert accuracy(errors_ms(clips))["mean_error"] > 40


@pytest.fixture
def planted_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Options of a run whose training and alignment are played: each boundary is found 10 ms late."""

    def play_prepare(corpus: Path, *rest: object) -> dict:
        corpus.mkdir(parents=True)
        return {}

    def play_training(args: argparse.Namespace, *words: str, **options: object) -> Path:
        path = args.output / "voice" / f"{args.epochs}-{args.seed}.pt"
        save_checkpoint(path, Checkpoint("FastPitch", {}, AUDIO, None, {}))
        return path

    monkeypatch.setattr(align_accuracy, "prepare", play_prepare)
    monkeypatch.setattr(align_accuracy, "train_voice", play_training)
    monkeypatch.setattr(align_accuracy, "align", lambda path, **rest: [found(np.full(3, 0.01), tuple("masa"))])
    return ["--output", str(tmp_path / "run")]


def test_a_good_alignment_passes_and_leaves_its_figures(planted_run: list[str], tmp_path: Path):
    assert align_accuracy.main([*planted_run, "--seed", "5"]) == 0
    figures = json.loads((tmp_path / "run" / "align_accuracy.json").read_text())
    assert figures["boundaries_ms"]["all"]["mean_error"] == pytest.approx(10)
    assert figures["seed"] == 5
    assert 0 <= figures["cpu_minutes"] < 1


def test_a_bad_or_slow_one_fails(planted_run: list[str]):
    with pytest.raises(InputError, match=r"the mean error, 10\.0 ms, is not below 9\.9 ms; train for more --epochs"):
        align_accuracy.main([*planted_run, "--max-error", "9.9"])
    with pytest.raises(InputError, match="CPU minutes, more than 1e-09; train for fewer --epochs"):
        align_accuracy.main([*planted_run, "--fresh", "--max-cpu-minutes", "1e-9"])


def test_an_earlier_run_is_removed_only_when_told(planted_run: list[str], tmp_path: Path):
    align_accuracy.main(planted_run)
    (tmp_path / "run" / "corpus" / "old.txt").write_text("of the earlier run")
    with pytest.raises(InputError, match=r"corpus exists already; add --fresh to remove it"):
        align_accuracy.main(planted_run)
    assert (tmp_path / "run" / "corpus" / "old.txt").is_file()
    align_accuracy.main([*planted_run, "--fresh"])
    assert not (tmp_path / "run" / "corpus" / "old.txt").exists()


@pytest.mark.slow
def test_the_learned_alignment_is_within_20_ms_of_the_truth_in_15_cpu_minutes(tmp_path: Path):
    """The script as a user calls it, on the whole corpus."""
    command = ["bash", str(ROOT / "scripts" / "align_accuracy.sh"), "--output", str(tmp_path / "run")]
    environment = {"PATH": "/usr/bin:/bin", "USE_SYSTEM_PYTHON": "1", "PYTHON": sys.executable, "HOME": str(tmp_path)}
    assert shutil.which("bash", path=environment["PATH"])
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "run" / "align_accuracy.json").read_text())
    for name in ("all", "training", "held out"):
        assert figures["boundaries_ms"][name]["mean_error"] < 20
    assert figures["boundaries_ms"]["all"]["within_50_ms"] > 0.95
    assert figures["cpu_minutes"] < 15
