"""Tests neither read nor write what a user keeps in the project's folder: trainings, downloads, corpora and lists."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from shell import ROOT, TRACKED

# What a user may have there, none of which can be read as what its name says.
USERS_FILES = (
    *(f"output/{model}_checkpoint_1.pt" for model in ("FastPitch", "HiFi-GAN", "Jasper", "Tacotron2", "WaveGlow")),
    *("output/nvlog.json", "output/quickstart/train/events", "voice/FastPitch_checkpoint_1.pt", "speech.wav"),
    *(f"pretrained_models/{model}/x.pt" for model in ("fastpitch", "hifigan", "tacotron2", "waveglow")),
    *("LJSpeech-1.1/wavs/LJ001-0001.wav", "data/LJSpeech-1.1/metadata.csv", "LibriSpeech/a.flac", "fsdd/0.wav"),
    *("my_dataset/train.txt", "filelists/mine.txt", "filelists/ljs_mel_dur_pitch_text_train_filelist.txt"),
    *("voices/mine.pt", "scripts/mine.sh", "notes"),
)


def contents(folder: Path) -> dict[str, str]:
    """Path -> checksum of each file, but of those that Python compiles."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts]
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def test_the_walks_leave_every_file_of_a_user_as_it_is_and_add_none(tmp_path: Path):
    project = tmp_path / "project"
    for name in TRACKED:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, project / name)
    for command in ("init", "add ."):
        subprocess.run(["git", "-C", str(project), *command.split()], check=True, capture_output=True)
    for name in USERS_FILES:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("of a user\n")
    before = contents(project)
    of_this_run = ("TESTED_PROJECT", "PYTEST_XDIST_WORKER")
    environment = {name: value for name, value in os.environ.items() if name not in of_this_run}
    words = f"-m pytest -n 0 -p no:cacheprovider --basetemp {tmp_path / 'temporary'} -k the_corpus_is_downloaded"
    walks = ("tests/test_seed_fastpitch.py", "tests/test_seed_others.py")
    command = [sys.executable, *words.split(), *walks]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert contents(project) == before
