"""One script each speaks and evaluates with every model; Docker's and the dictionary's say what they do."""

from pathlib import Path

import pytest
from shell import ROOT, dry_run, run_bash

import inference
from common.registry import get_model

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
    for own in ("--no-audio", "--griffin-lim-iters 9", "--waveglow w.pt", "--hifigan h.pt"):
        (shown,) = dry_run(project / "scripts/inference_example.sh", *own.split())
        assert own in " ".join(shown) and "pretrained_models/hifigan" not in " ".join(shown)


def test_docker_builds_an_image_and_starts_it_with_this_folder():
    build, start = ROOT / "scripts/docker/build.sh", ROOT / "scripts/docker/interactive.sh"
    assert dry_run(build, "--pull") == [["docker", "build", ".", "-t", "speech-toolkit", "--pull"]]
    (words,) = dry_run(start, "ls", PORT="6006")
    folder = f"{ROOT}:/workspace/speech-toolkit"
    assert words == ["docker", "run", *f"--rm --ipc host -v {folder} -p 6006:6006 speech-toolkit ls".split()]
    assert dry_run(start, NUM_GPUS="2")[0][-3:] == ["--gpus", "2", "speech-toolkit"]
    for script in (build, start):
        assert f"bash scripts/docker/{script.name}\n" in run_bash(script, "--help").stdout
