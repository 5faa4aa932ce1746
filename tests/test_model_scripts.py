"""One script each speaks and evaluates with every model; Docker's and the dictionary's say what they do."""

import os
import sys
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import tiny_evaluation
from shell import ROOT, dry_run, run_bash, training_options
from tiny_voice import save_vocoder, save_voice

import inference
from common.config import AudioConfig
from common.registry import get_model
from jasper.yaml_config import load_config

NEWEST = "output/{}_checkpoint_NEWEST.pt"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project's folder with the scripts and texts alone."""
    for name in ("scripts", "phrases"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


def options_in(words: list[str], text: str) -> bool:
    """Whether each option in ``text`` stands in a command with its value."""
    found = " ".join(words) + " "
    return all(f" --{option.strip()} " in found for option in text.split("--")[1:])


@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        ("FastPitch", "--fastpitch {FastPitch} --batch-size 32 --input phrases/devset10.tsv"),
        ("Tacotron2", "--tacotron2 {Tacotron2} --output output/audio_devset10_fp32"),
        ("HiFi-GAN", "--fastpitch {FastPitch} --hifigan {HiFi-GAN} --denoising-strength 0.005"),
        ("WaveGlow", "--fastpitch {FastPitch} --waveglow {WaveGlow} --denoising-strength 0.01"),
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
    assert options_in(words, wanted)
    assert [name for name in models if NEWEST.format(name) in words and NEWEST.format(name) not in wanted] == []
    assert ("--denoising-strength" in words) == (model in ("HiFi-GAN", "WaveGlow"))


def test_the_example_passes_its_variables_and_arguments_on():
    settings = {"FASTPITCH": "a b.pt", "AMP": "true", "EMA": "true", "CPU": "true"}
    (words,) = dry_run("scripts/inference_example.sh", "--pace", "0.9", **settings)
    assert options_in(words, "--fastpitch a b.pt --amp --ema --output output/audio_devset10_amp --pace 0.9")
    assert not {"--cuda", "--hifigan", "--denoising-strength"} & set(words)
    (words,) = dry_run("scripts/inference_example.sh", TACOTRON2="t.pt", WAVEGLOW="w.pt", PHRASES="-1.tsv")
    assert options_in(words, "--tacotron2 t.pt --waveglow w.pt --output output/audio_-1_fp32")
    assert "--fastpitch" not in words and "--speaker" not in words


@pytest.mark.parametrize("header", ["mel\toutput", "output|wav", "wav\r"])
def test_a_list_of_mels_or_recordings_needs_no_voice(tmp_path: Path, header: str):
    (tmp_path / "list.tsv").write_text(f"{header}\n")
    for script in ("inference_example.sh", "inference_benchmark.sh"):
        words, *_ = dry_run(f"scripts/{script}", HIFIGAN="h.pt", PHRASES=tmp_path / "list.tsv")
        assert options_in(words, "--hifigan h.pt") and not {"--fastpitch", "--speaker"} & set(words)


def test_evaluation_transcribes_each_list(tmp_path: Path):
    for name in ("dev-clean", "test-other"):
        (tmp_path / f"librispeech-{name}-wav.json").touch()
    variables = {"JASPER": "j.pt", "DATASET_PATH": tmp_path, "DATASETS": "dev-clean test-other", "EMA": "true"}
    lines = dry_run("scripts/evaluation.sh", "-bs", "3", CPU="true", **variables)
    runs = [
        inference.build_recognition_parser(get_model("Jasper")).parse_args(words[2:])
        for words in lines
        if "inference.py" in words
    ]
    assert [run.output[0].name for run in runs] == ["librispeech-dev-clean-wav.json", "librispeech-test-other-wav.json"]
    assert all((run.ema, run.quiet, run.batch_size, run.dataset_path) == (True, True, 3, tmp_path) for run in runs)


def test_the_digits_script_trains_and_transcribes_what_its_settings_say():
    training, transcribing = dry_run("scripts/train_digits.sh", "--resume", DATASET="/data/fsdd", EPOCHS="7")
    args = training_options(training)
    assert (args.epochs, args.cuda, args.resume, args.dataset_path) == (7, False, True, Path("/data/fsdd/recordings"))
    assert (args.batch_size, args.gradient_accumulation_steps, args.lr_policy) == (8, 4, "polynomial")
    assert load_config(ROOT / args.model_config).model.features.sample_rate == 8000 and args.ema_decay > 0
    transcribed = inference.build_recognition_parser(get_model("Jasper")).parse_args(transcribing[2:])
    assert transcribed.jasper == Path("output/digits/Jasper_checkpoint_7.pt") and transcribed.ema
    assert transcribed.input == args.validation_files == [Path("output/digits/test.txt")]


def test_a_downloaded_voice_speaks_through_the_vocoder_downloaded_last(project: Path):
    def words() -> list[str]:
        return dry_run(project / "scripts/inference_example.sh")[0]

    models = project / "pretrained_models"
    for folder in ("fastpitch", "hifigan", "waveglow"):
        (models / folder).mkdir(parents=True)
    (models / "fastpitch" / "nvidia_fastpitch_210824.pt").touch()
    (models / "waveglow" / "nvidia_waveglow256pyt_fp16.pt").touch()
    assert options_in(words(), "--fastpitch pretrained_models/fastpitch/nvidia_fastpitch_210824.pt")
    assert options_in(words(), "--waveglow pretrained_models/waveglow/nvidia_waveglow256pyt_fp16.pt")
    (models / "hifigan" / "hifigan_gen_checkpoint_6500.pt").touch()
    assert options_in(words(), "--hifigan pretrained_models/hifigan/hifigan_gen_checkpoint_6500.pt")
    assert "--waveglow" not in words()
    for own in ("--no-audio", "--griffin-lim-iters 9", "--waveglow w.pt", "--hifigan=h.pt", "--harmonic h.pt"):
        (shown,) = dry_run(project / "scripts/inference_example.sh", *own.split())
        assert set(own.replace("=", " ").split()) <= set(
            " ".join(shown).replace("=", " ").split()
        ) and "pretrained_models/hifigan" not in " ".join(shown)


def test_a_voice_speaks_through_a_downloaded_vocoder_that_fits_and_the_script_says_which(project: Path):
    (project / "bin").mkdir()
    python = project / "bin/python"  # which shows what it would speak
    python.write_text(f"""#!/bin/sh
case "$1" in *inference.py) echo "$@" ;; *) PYTHONPATH='{ROOT}' exec '{sys.executable}' "$@" ;; esac
""")
    python.chmod(0o755)
    folder = project / "pretrained_models/hifigan"
    folder.mkdir(parents=True)
    voice, fitting = save_voice(project / "voice.pt"), save_vocoder(folder / "fitting.pt")
    other = tiny_evaluation.save_vocoder(folder / "other.pt", AudioConfig())
    os.utime(fitting, (0, 0))

    def run(**variables: str) -> CompletedProcess[str]:
        return run_bash(project / "scripts/inference_example.sh", PYTHON=python, FASTPITCH=voice, **variables)

    trained = project / "output/HiFi-GAN_checkpoint_9.pt"
    for file, torchscript in ((fitting, "false"), (fitting, "true"), (trained, "true")):
        name = file.relative_to(project)
        trained.parent.mkdir(exist_ok=True)
        if file == trained:
            trained.write_bytes(fitting.read_bytes())
        found = run(TORCHSCRIPT=torchscript)
        assert options_in(found.stdout.split(), f"--hifigan {name} --denoising-strength 0.005")
        said = f"note: {name} makes the sound; HIFIGAN, WAVEGLOW or HARMONIC names another"
        assert found.stderr == f"{said} vocoder\n"
    fitting.unlink()
    trained.unlink()
    for none in (run(), run(TORCHSCRIPT="true")):  # inference.py chooses
        assert (none.returncode, none.stderr) == (0, "")
        assert not any(option in none.stdout for option in ("--hifigan", "--waveglow", "--harmonic"))
    assert (run(HIFIGAN=str(other)).stderr, run(MODEL="HiFi-GAN").stderr) == ("", ""), "one that is named"


def test_docker_builds_an_image_and_starts_it_with_this_folder():
    build, start = ROOT / "scripts/docker/build.sh", ROOT / "scripts/docker/interactive.sh"
    assert dry_run(build, "--pull") == [["docker", "build", ".", "-t", "speech-toolkit", "--pull"]]
    (words,) = dry_run(start, "ls", PORT="6006")
    folder = f"{ROOT}:/workspace/speech-toolkit"
    assert words == ["docker", "run", *f"--rm --ipc host -v {folder} -p 6006:6006 speech-toolkit ls".split()]
    assert dry_run(start, NUM_GPUS="2")[0][-3:] == ["--gpus", "2", "speech-toolkit"]
    for script in (build, start):
        assert f"bash scripts/docker/{script.name}\n" in run_bash(script, "--help").stdout
