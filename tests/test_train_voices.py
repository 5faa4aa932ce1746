"""The script that trains the shipped voice and vocoder, its lists, and what measures them."""

import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import parselmouth
import pytest
import soundfile
import torch
from shell import ROOT, dry_run, run_bash, training_options
from tiny_voice import AUDIO, save_vocoder, save_voice

from common.config import AudioConfig
from common.errors import InputError
from scripts.datasets import make_corpus, voice_data
from scripts.demos import measure_voices

SCRIPT = "scripts/train_voices.sh"


def by_model(commands: list[list[str]]) -> dict[str, list[list[str]]]:
    trainings = [words for words in commands if "train.py" in words]
    return {
        name: [one for one in trainings if f"--model {name}" in " ".join(one)] for name in ("Harmonic", "FastPitch")
    }


def test_all_stages_are_commands_that_train_py_takes(tmp_path: Path):
    commands = dry_run(SCRIPT, NUM_GPUS="0", OUTPUT_DIR=tmp_path, DATASET_PATH=tmp_path)
    trainings = by_model(commands)
    (vocoder,) = map(training_options, trainings["Harmonic"])
    assert vocoder.epochs == 100 and vocoder.resume and vocoder.dataset_path == tmp_path / "data"
    base = training_options(trainings["FastPitch"][0])
    assert base.learned_alignment and base.g2p == "espeak" and base.n_speakers == len(voice_data.READERS) + 1
    voice = trainings["FastPitch"][1]
    checkpoint = save_voice(tmp_path / "any.pt")
    assert voice[voice.index("--from-checkpoint") + 1] == str(base.output / "FastPitch_checkpoint_12.pt")
    voice[voice.index("--from-checkpoint") + 1] = str(checkpoint)
    assert training_options(voice).training_files == [tmp_path / "data/lj_train.txt"]
    stripped = [words for words in commands if "scripts.strip_checkpoint" in words]
    assert [(words[-3], words[-1]) for words in stripped] == [
        ("float16", "voices/vocoder-small.pt"),
        ("bfloat16", "voices/lj-small.pt"),
    ]


def test_one_stage_alone(tmp_path: Path):
    commands = dry_run(SCRIPT, NUM_GPUS="1", STAGES="vocoder", OUTPUT_DIR=tmp_path, DATASET_PATH=tmp_path)
    trainings = by_model(commands)
    assert len(trainings["Harmonic"]) == 1 and trainings["FastPitch"] == []
    assert "--cuda" in trainings["Harmonic"][0]
    wrong = run_bash(ROOT / SCRIPT, STAGES="vocoders", DRY_RUN="1", PYTHON="py")
    assert wrong.returncode == 2 and "expected of data, vocoder and voice" in wrong.stderr
    absent = run_bash(ROOT / SCRIPT, DATASET_PATH="/nonexistent", PYTHON="true", NUM_GPUS="0", OUTPUT_DIR=tmp_path)
    assert absent.returncode == 1 and "/nonexistent: no such folder" in absent.stderr


def test_finished_stages_are_skipped(tmp_path: Path):
    done = ["data/vocoder_train.txt", "vocoder/Harmonic_checkpoint_100.pt"]
    done += ["base/FastPitch_checkpoint_12.pt", "lj/FastPitch_checkpoint_200.pt"]
    for name in done:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    again = run_bash(
        ROOT / SCRIPT, PYTHON="echo", NUM_GPUS="0", OUTPUT_DIR=tmp_path, DATASET_PATH=tmp_path, VOICES=tmp_path / "v"
    )
    assert again.returncode == 0, again.stderr
    assert again.stdout.count(" is there\n") == len(done) and "train.py" not in again.stdout
    assert again.stdout.count("scripts.strip_checkpoint") == 2


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As recordings four clips of embedded speech, and sentences."""
    folder = tmp_path_factory.mktemp("corpora")
    (folder / "sentences.txt").write_text("Good day.\nGood night.\nThe boat left the harbor early.\nIt rained.\n")
    words = ["--sentences", str(folder / "sentences.txt"), "--n-validation", "1"]
    make_corpus.main(["-o", str(folder / "lj"), *words])
    return folder


def test_the_data_leave_out_what_is_held_back_and_are_made_once(
    corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("SENTENCES", "MORE_SENTENCES"):
        monkeypatch.setattr(voice_data, name, corpora / "sentences.txt")
    monkeypatch.setattr(voice_data, "VALIDATION", ("EM-0001",))
    words = ["-o", str(tmp_path), "--recordings", str(corpora / "lj"), "--held-back"]
    voice_data.main([*words, "EM-0002"])
    lists = {path.stem: path.read_text().splitlines() for path in tmp_path.glob("*.txt")}
    rows = {"EM-0003": "the boat left the harbor early.", "EM-0004": "it rained."}
    assert lists["lj_train"] == [f"wavs/lj/{name}.wav|{text}|lj" for name, text in rows.items()]
    assert lists["lj_val"] == ["wavs/lj/EM-0001.wav|good day.|lj"]
    assert not any("EM-0002" in line or "EM-0001" in line for line in lists["vocoder_train"] + lists["base_train"])
    assert {line.rpartition("|")[2] for line in lists["base_train"]} == {*voice_data.READERS, "lj"}
    wavs = [tmp_path / line.partition("|")[0] for rows in lists.values() for line in rows]
    times = {path: path.stat().st_mtime_ns for path in wavs}
    voice_data.main([*words, "EM-0002"])
    assert {path: path.stat().st_mtime_ns for path in wavs} == times
    with pytest.raises(InputError, match="0 clips besides those held back"):
        voice_data.main([*words, *(f"EM-000{number}" for number in range(1, 5))])


def test_a_changed_voice_has_the_pitch_asked_for():
    time = np.arange(22050) / 22050
    wave = sum(0.1 * np.sin(2 * np.pi * 120 * k * time) for k in range(1, 8))
    raised = voice_data.change_voice(wave, sampling_rate=22050, formants=1.1, semitones=5)
    low = voice_data.change_voice(wave, sampling_rate=22050, formants=1.0, pitch=90.0)
    for made, expected in ((raised, 120 * 2 ** (5 / 12)), (low, 90.0)):
        pitch = parselmouth.Sound(made, 22050).to_pitch_ac().selected_array["frequency"]
        assert np.median(pitch[pitch > 0]) == pytest.approx(expected, rel=0.02)
        assert len(made) == len(wave) and np.abs(made).max() <= 0.96


def test_a_copy_that_equals_the_recording_is_perfect_and_a_raised_one_is_off():
    time = np.arange(22050) / 22050
    wave, raised = (torch.from_numpy(0.3 * np.sin(2 * np.pi * f * time)).float() for f in (200.0, 212.0))
    same = measure_voices.compare_copy(wave, wave, AudioConfig(), lambda a, b, rate: 1.0)
    assert same == measure_voices.Copy(0.0, 1.0, 0.0, 0.0)
    other = measure_voices.compare_copy(wave, raised[:-100], AudioConfig(), lambda a, b, rate: 0.5)
    assert other.mel_distance > 0.1 and other.stoi == 0.5
    assert other.f0_cents == pytest.approx(1200 * math.log2(212 / 200), abs=2)


class Echo:
    """A recognizer that hears the same words in everything, and keeps how many samples it got."""

    def __init__(self, **_: object) -> None:
        self.samples: list[int] = []

    def start_utt(self) -> None: ...

    def end_utt(self) -> None: ...

    def process_raw(self, data: bytes, *, full_utt: bool) -> None:
        self.samples.append(len(data) // 2)

    def hyp(self) -> SimpleNamespace:
        return SimpleNamespace(hypstr="good the(2) boat")


def test_word_errors_are_of_16_khz_sound_and_plain_words():
    decoder = Echo()
    waves = [torch.ones(22050), torch.zeros(22050)]
    errors = measure_voices.word_errors(decoder, ["Good, the boat!", "Well-made 2"], waves, sampling_rate=22050)
    assert (errors.word_errors, errors.n_words) == (3, 6)
    assert decoder.samples == [16000, 16000]


def test_the_command_measures_a_voice_and_keeps_the_sound(
    corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
):
    packages = {"pystoi": SimpleNamespace(stoi=lambda a, b, rate: 0.75), "pocketsphinx": SimpleNamespace(Decoder=Echo)}
    monkeypatch.setattr(measure_voices, "import_module", packages.__getitem__)
    monkeypatch.setattr(measure_voices, "seconds_to_first_sound", lambda voice, vocoder: 1.25)
    voice, vocoder = save_voice(tmp_path / "voice.pt"), save_vocoder(tmp_path / "vocoder.pt")
    words = ["-d", str(corpora / "lj"), "--vocoder", str(vocoder), "--threads", "1"]
    monkeypatch.setattr(measure_voices, "GRIFFIN_LIM_ITERATIONS", 2)
    assert measure_voices.main([*words, "--voice", str(voice), "--clips", "EM-0001", "-o", str(tmp_path / "m")]) == 0
    out = capsys.readouterr().out
    assert "| Griffin-Lim |" in out and "| 0.750 |" in out
    assert "| the recordings | 100.0%" in out and "the first sound came 1.2 s" in out
    assert soundfile.info(tmp_path / "m/the_voice_by_the_vocoder/EM-0001.wav").samplerate == AUDIO.sampling_rate
    assert measure_voices.main([*words, "--clips", "EM-0001"]) == 0
    assert "who says it" not in capsys.readouterr().out
    with pytest.raises(InputError, match="no clip LJ001-0073"):
        measure_voices.main(words)


def test_a_package_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(InputError, match=r"nothing_of_this_name: not installed; .*pip install pocketsphinx pystoi"):
        measure_voices.needed("nothing_of_this_name")
