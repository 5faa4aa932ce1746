"""Every command of the documents that this project implements has its files, variables and options."""

import re
import shlex
from pathlib import Path

import pytest
from seed_commands import Project, commands, files_named, seed
from shell import n_processes, training_options, words_of
from test_documents import check_options

TEXTS = [seed(number) for number in range(5)]
# What stands in the documents for a reader's own, and a slip of theirs.
FILLED = {
    "<BATCH_SIZES>": "'1 2'",
    "<DURATIONS>": "'2 16.7'",
    "<NUMS_OF_GPUS>": "'1 8'",
    "<FastPitch checkpoint>": "voice.pt",
    "<WaveGlow checkpoint>": "waveglow.pt",
    "<HiFi-GAN checkpoint>": "hifigan.pt",
    "--validation files": "--validation-files",
}
CASES = [(number, command) for number, text in enumerate(TEXTS) for command in dict.fromkeys(commands(text))]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project after training and downloads, as its commands see it."""
    project = Project(tmp_path)
    for name in ("output/FastPitch_checkpoint_1.pt", "output/HiFi-GAN_checkpoint_1.pt", "LJSpeech-1.1/metadata.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    for name in ("tacotron2/state_dict.pt", "waveglow/waveglow.pt"):
        (tmp_path / "pretrained_models" / name).parent.mkdir(parents=True)
        (tmp_path / "pretrained_models" / name).touch()
    return project


@pytest.mark.parametrize(("number", "command"), CASES)
def test_a_published_command_is_accepted(number: int, command: str, project: Project):
    for place, own in FILLED.items():
        command = command.replace(place, own)
    if command.startswith(("git clone", "cd ")):
        return
    if command.startswith("-"):
        model = "HiFi-GAN" if number == 1 else "FastPitch"
        training_options(shlex.split(f"train.py -m {model} -o out --training-files a --validation-files b {command}"))
        return
    if "bash scripts" not in command and "bash platform" not in command and not command.startswith("scripts/"):
        check_options(words_of(command.replace(" -h", " --help"))[1])
        return
    runs = project.dry_run(command if "bash " in command else f"bash {command}")
    for words in runs:
        if "train.py" in words:
            args, settings = training_options(words), words_of(command)[0]
            assert args.amp == (settings.get("AMP") == "true") or "_benchmark" in command
            if number == 0 and "NUM_GPUS" in settings:
                assert n_processes(words) * args.batch_size * args.gradient_accumulation_steps == 256
        elif words[0] == "py" and "-c" not in words:
            check_options(words)


@pytest.mark.parametrize("name", sorted({name for text in TEXTS for name in files_named(text)}))
def test_a_published_file_is_here(name: str, project: Project):
    assert (project / name).is_file()


def test_the_corpus_is_also_found_where_the_documents_have_it(tmp_path: Path):
    (tmp_path / "data/LJSpeech-1.1").mkdir(parents=True)
    project = Project(tmp_path)
    for script in ("prepare_dataset", "train_lj22khz", "train", "extract_fine_tune_mels"):
        assert re.search(r"data/LJSpeech-1\.1", project.bash(f"bash scripts/{script}.sh", DRY_RUN="1").stdout), script
