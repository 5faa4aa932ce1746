"""The benchmark scripts run what their settings say, and their figures and tables are computed rightly."""

import re
import shlex
import sys
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
import torch
from shell import ROOT, dry_run, n_processes, run_bash, training_options
from training_setup import parsed

import inference
from common.audio.wav import save_wav
from common.errors import InputError, OptionError
from common.evaluation import judges
from common.logger import Logger
from common.registry import available_models
from common.synthesis.measurements import BatchTimes, Measurements
from scripts.benchmarks import random_models, table, voices


def test_the_training_benchmark_runs_each_combination(tmp_path: Path):
    variables = {"BS": "2 16", "NUM_GPUS": "0 4", "OUTPUT_DIR": tmp_path, "MODEL": "HiFi-GAN", "DATASET_PATH": tmp_path}
    found = []
    for words in dry_run("scripts/train_benchmark.sh", "--seed", "4", **variables):
        args = training_options(words)
        assert n_processes(words) * args.batch_size * args.gradient_accumulation_steps == 128
        assert (args.model, args.epochs, args.validation_interval, args.seed) == ("HiFi-GAN", 10, 11, 4)
        assert (args.epochs_per_checkpoint, args.samples_interval) == (11, 11)
        found.append((args.batch_size, n_processes(words), args.cuda, args.amp))
    assert found == [(size, n, n > 1, amp) for size in (2, 16) for n in (1, 4) for amp in (False, True)]
    variables |= {"BS": "8", "NUM_GPUS": "1", "AMP": "true"}
    (words,) = dry_run("scripts/benchmark.sh", "train", "--compile", **variables)
    assert training_options(words).amp and training_options(words).compile


def test_the_table_has_the_last_figures_of_each_log(tmp_path: Path):
    for name, latency in (("one/nvlog.json", 0.6), ("fp32.json", 0.25)):
        logger = Logger(tmp_path / name, stdout=False)
        for factor in (9, 1):  # an earlier, slower run in the same file
            logger.parameter(batch_size=4)
            logger.log((), {"avg_latency": factor * latency, "90%_latency": 1.0, "avg_mel_gen_RTF@4": 3.0})
    logger.log((), {"avg_hifigan_frames/s": 1234567.8})
    rows = table.rows([f"{tmp_path}/one/nvlog.json", f"{tmp_path}/fp32.json"])
    assert [list(row.values()) for row in rows] == [["one", "0.6", "1", "-"], ["fp32", "0.25", "1", "1.23457e+06"]]
    assert table.markdown(rows)[0] == "|run|avg_latency|90%_latency|avg_hifigan_frames/s|"


def test_the_benchmark_takes_one_batch_size_and_a_vocoder():
    variables = {"CPU": "true", "BATCH_SIZE": "2"}
    (words,) = dry_run("scripts/inference_benchmark.sh", FASTPITCH="v.pt", HIFIGAN="h.pt", DENOISING="0.1", **variables)
    text = " ".join(words)
    assert "--benchmark" in words and "--hifigan h.pt" in text and "--batch-size 2" in text
    assert "--denoising-strength 0.1" in text
    (words,) = dry_run("scripts/inference_benchmark.sh", TACOTRON2="t.pt", WAVEGLOW="w.pt", **variables)
    assert "--tacotron2 t.pt --waveglow w.pt" in " ".join(words) and "--fastpitch" not in words
    assert run_bash(ROOT / "scripts/inference_benchmark.sh", FASTPITCH="v.pt", AMP="perhaps").returncode == 2


def test_a_random_vocoder_speaks_its_mels_and_the_table_shows_how_fast(tmp_path, monkeypatch):
    monkeypatch.setattr(random_models, "N_FRAMES", 40)  # where bfloat16 is emulated, 693 take long
    random_models.main([str(tmp_path), *"--model HiFi-GAN --kind v3 --count 1".split()])
    options = ["-i", str(tmp_path / "random_mels.tsv"), "--hifigan", str(tmp_path / "HiFi-GAN_v3.pt"), "-bs", "1"]
    for name, precision in (("fp32", []), ("amp", ["--amp", "--amp-dtype", "bfloat16"])):
        inference.main([*options, "--log-file", str(tmp_path / name), *precision])
    first, second = table.rows([str(tmp_path / "fp32"), str(tmp_path / "amp")])
    assert first.keys() == second.keys() >= {"run", "avg_hifigan_frames/s", "avg_hifigan_latency"}


def test_the_log_of_a_run_that_was_cut_short_is_named(tmp_path: Path):
    logger = Logger(tmp_path / "log.json", stdout=False)
    logger.parameter(batch_size=4)
    with pytest.raises(InputError, match=r"log\.json: no .* cut short"):
        table.rows([f"{tmp_path}/log.json"])


SPEAKER = """
import io, pathlib, shutil, sys, wave
def sound(text):
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(1), written.setsampwidth(2), written.setframerate(8000)
        written.writeframes(bytes([0, 16, 0, 240]) * 400 * len(text))
    return file.getvalue()
how, *places = sys.argv[1:]
if how == "list":
    for line in pathlib.Path(places[0]).read_text().splitlines():
        name, text = line.split("|")
        pathlib.Path(places[1], name).write_bytes(sound(text))
elif how == "-i":  # as inference.py copies recordings
    for line in pathlib.Path(places[0]).read_text().splitlines()[1:]:
        name, recording = line.split("\\t")
        shutil.copy(recording, pathlib.Path(places[2], name))
elif how == "output":
    pathlib.Path(places[0]).write_bytes(sound(places[1]))
elif how == "pipe":
    sys.stdout.buffer.write(sound(sys.stdin.read()))
elif how == "fail":
    sys.exit("no voice at all")
"""


@pytest.fixture
def compare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Compare systems that the script above speaks for, and return the table's rows."""
    monkeypatch.setattr(judges, "find_spec", lambda name: None)
    monkeypatch.setattr(voices, "ROOT", tmp_path)
    (tmp_path / "inference.py").write_text(SPEAKER)
    (tmp_path / "list.txt").write_text('a.wav|Go {text} on.\nsub/b.wav|It\'s "so"; yes?\n')

    def compare(*systems: str) -> list[list[str]]:
        words = [one.replace("SPEAKER", f"{sys.executable} {tmp_path}/inference.py") for one in systems]
        voices.main([f"{tmp_path}/list.txt", "-o", f"{tmp_path}/out", *words])
        return [line.strip("|").split("|") for line in capsys.readouterr().out.splitlines() if line.startswith("|")]

    return compare


def test_systems_of_each_kind_speak_and_their_work_is_known_where_it_can_be(tmp_path: Path, compare):
    systems = ["whole=SPEAKER list {list} {folder}", "one=SPEAKER output {output} {text}", "pipe=SPEAKER pipe"]
    heading, _, *rows = compare(*systems)
    assert len(heading) == 4 and [row[0] for row in rows] == ["whole", "one", "pipe"]
    assert all(float(row[3]) >= 0 and row[1] == "-" for row in rows)
    assert len({(tmp_path / "out" / row[0] / "sub/b.wav").read_bytes() for row in rows}) == 1


def test_recordings_are_measured_beside_the_systems(tmp_path: Path, compare):
    for name in ("recorded/a.wav", "recorded/sub/b.wav"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        save_wav(tmp_path / name, torch.rand(22050) - 0.5, sampling_rate=22050)
    rows = compare("--recordings", str(tmp_path / "recorded"))[2:]
    assert [row[0] for row in rows] == ["copies, vocoder", "copies, Griffin-Lim", "recording"]
    assert rows[2][3] == "-"
    assert (tmp_path / "out/copies, vocoder/a.wav").read_bytes() == (tmp_path / "recorded/a.wav").read_bytes()


@pytest.mark.parametrize(
    ("system", "error", "words"),
    [
        ("a=SPEAKER fail", InputError, "exit status 1: no voice at all"),
        ("a=SPEAKER nothing {output}", InputError, r"word\.wav"),
        ("a=/nowhere/speak", OptionError, "/nowhere/speak: cannot be started"),
        ("a=http://127.0.0.1:9/", InputError, "127.0.0.1:9/v1: no answer"),
        ("SPEAKER", OptionError, "expected NAME=COMMAND or NAME=URL"),
        ("../a=SPEAKER pipe", OptionError, "expected NAME=COMMAND or NAME=URL"),
    ],
)
def test_a_system_that_cannot_speak_is_named(system: str, error: type[Exception], words: str, compare):
    with pytest.raises(error, match=words):
        compare(system)


LISTS = "-o out --training-files a_dur_.txt --validation-files b.txt".split()
SCRIPT = ROOT / "scripts/benchmarks/gpu.sh"


def test_every_model_is_trained_and_each_training_has_the_options_of_train_py(tmp_path: Path):
    done = run_bash("-c", f"bash {SCRIPT} {tmp_path}", DRY_RUN="1")
    lines = done.stdout.splitlines()
    trainings = [shlex.split(line.partition(" --model ")[2]) for line in lines if "benchmarks.updates" in line]
    assert {words[0] for words in trainings} == set(available_models())
    assert "bfloat16" in lines[0] and "tf32" in lines[-6]
    for words in trainings:
        own = {"--accumulation", "--steps", "--settings"}
        others = [word for place, word in enumerate(words) if not {word, words[place - 1]} & own]
        assert parsed(["--model", *others, *LISTS]).model == words[0]
    for name in ("TACOTRON2", "HIFIGAN", "WAVEGLOW", "JASPER"):
        assert any(re.search(rf"\b{name}=", line) for line in lines)
    only = run_bash("-c", f"bash {SCRIPT} {tmp_path}", DRY_RUN="1", ONLY="tests extraction").stdout
    assert only.count("\n") == 2 and "tests/test_gpu.py" in only


BATCHES = [
    BatchTimes(n_utterances=4, n_tokens=400, n_frames=2000, n_samples=512000, generator=0.2, vocoder=0.5),
    BatchTimes(n_utterances=4, n_tokens=300, n_frames=1500, n_samples=384000, generator=0.1, vocoder=0.45),
    BatchTimes(n_utterances=1, n_tokens=60, n_frames=300, n_samples=76800, generator=0.04, vocoder=0.1),
]


def summary(batches: list[BatchTimes]) -> dict[str, float]:
    return Measurements(sampling_rate=22050, batch_size=4, vocoder_name="griffin_lim", batches=batches).summary()


def test_latency_intervals_are_those_of_a_normal_distribution():
    figures = summary(BATCHES)
    for stage, times in {
        "": np.array([0.7, 0.55, 0.14]),
        "generator_": np.array([0.2, 0.1, 0.04]),
        "griffin_lim_": np.array([0.5, 0.45, 0.1]),
    }.items():
        assert figures[f"avg_{stage}latency"] == pytest.approx(times.mean())
        for percent in (90, 95, 99):
            expected = times.mean() + NormalDist().inv_cdf((1 + percent / 100) / 2) * times.std()
            assert figures[f"{percent}%_{stage}latency"] == pytest.approx(expected)


def test_the_real_time_factor_is_per_utterance_and_that_of_the_batch_is_for_all_of_it():
    figures = summary(BATCHES[:2])
    speech = 896000 / 22050  # s
    assert figures["avg_RTF@4"] == pytest.approx(speech / 1.25)
    assert figures["avg_RTF"] == pytest.approx(speech / 1.25 / 4)
