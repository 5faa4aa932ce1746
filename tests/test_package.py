"""The installed package speaks, serves and exports from any folder, by the command `speech` and from Python."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import pytest
import soundfile
from packaging.requirements import Requirement
from setuptools import Distribution
from setuptools.config.pyprojecttoml import apply_configuration
from shell import ROOT, project_files

PACKAGES = ("speech_toolkit", "common", "fastpitch", "hifigan", "waveglow", "tacotron2", "jasper", "harmonic")
DATA = ("scripts", "voices", "phrases", "filelists")
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> Distribution:
    """What pyproject.toml installs."""
    monkeypatch.chdir(ROOT)
    return apply_configuration(Distribution(), ROOT / "pyproject.toml")


def test_every_file_of_the_library_is_installed(declared: Distribution):
    packages, patterns = set(declared.packages), ("*.py", "*.sh", "speaking_rates.*", *declared.package_data[""])
    for name in project_files(ROOT):
        path = Path(name)
        if path.parts[0] in (*PACKAGES, *DATA):
            assert ".".join(path.parts[:-1]) in packages, name
            assert any(path.match(pattern) for pattern in patterns), name
    assert not packages & {"tests", "platform"}


def test_what_it_requires_is_what_speaking_needs_and_extras_the_rest(declared: Distribution):
    def listed(*names: str) -> set[Requirement]:
        texts = [(ROOT / f"requirements-{name}.txt").read_text().splitlines() for name in names]
        return {Requirement(line) for text in texts for line in text if line and line[0] != "#"}

    assert set(map(Requirement, declared.install_requires)) == listed("speak")
    for name in ("train", "serve", "evaluate"):
        assert set(map(Requirement, declared.extras_require[name])) == listed(name)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of an environment that has the wheel, beside the packages that it requires."""
    folder = tmp_path_factory.mktemp("installed")
    project = shutil.copytree(ROOT, folder / "project", symlinks=True)  # in which setuptools makes build/
    built = [sys.executable, "-c", BUILD, str(folder)]
    subprocess.run(built, cwd=project, check=True, capture_output=True)
    venv.create(folder / "venv", symlinks=True)
    python = folder / "venv/bin/python"
    (wheel,) = folder.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, str(wheel)], check=True)
    (site,) = (folder / "venv/lib").glob("python*/site-packages")
    (site / "required.pth").write_text(sysconfig.get_path("purelib"))
    return python.parent


@pytest.fixture
def speech(installed: Path, tmp_path: Path) -> Callable[..., str]:
    """Run the command in a folder of its own, and return what it prints."""
    environment = {"PATH": f"{installed}:/usr/bin:/bin", "HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}

    def run(*words: str) -> str:
        done = subprocess.run([*words], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_the_installed_command_speaks_exports_and_lists_from_any_folder(speech: Callable[..., str], tmp_path: Path):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    samples = re.findall(r"(?:^|`)(speech speak \".+?)(?:`|  #|$)", readme, re.MULTILINE)
    for command in (samples[0], samples[-1]):
        speech(*shlex.split(command))
    program = (
        re.search(r"```python\n(.+?)```", readme, re.DOTALL)[1] + "\nimport speech_toolkit as s; print(s.__version__)"
    )
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[1]
    assert speech("python", "-c", program).endswith(f"{version}\n")
    for name in ("heart.mp3", "speech.wav", "hello.wav"):
        assert soundfile.info(tmp_path / name).duration > 0.3
    (line,) = speech("speech", "voices").splitlines()
    assert "en-small.pt: FastPitch, en" in line
    speech("speech", "export", line.partition(": ")[0], "--format", "safetensors", "-o", "voice.safetensors")
    assert (tmp_path / "voice.safetensors").stat().st_size > 1e6
    assert "lj_audio" not in speech("speech", "inspect", "voice.safetensors")


def test_the_installed_command_serves_from_any_folder(installed: Path, tmp_path: Path):
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": ""}
    words = [installed / "speech", "serve", "--port", "0", "--log-format", "off"]
    with subprocess.Popen(words, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as server:
        try:
            line = next(line for line in server.stdout if line.startswith("the studio is at "))
            with urlopen(line.split()[4]) as page:
                assert page.status == 200
        finally:
            server.terminate()
