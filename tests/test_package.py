"""Installing this folder makes the library importable anywhere, and nothing else."""

from pathlib import Path

import pytest
from packaging.requirements import Requirement
from setuptools import Distribution
from setuptools.config.pyprojecttoml import apply_configuration
from shell import ROOT, project_files

LIBRARY = {"speech_toolkit", "common", "fastpitch", "hifigan", "waveglow", "tacotron2", "jasper", "harmonic"}


@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> Distribution:
    """What pyproject.toml installs."""
    monkeypatch.chdir(ROOT)
    return apply_configuration(Distribution(), ROOT / "pyproject.toml")


def test_the_library_is_installed_and_no_command_script_or_test(declared: Distribution):
    assert {name.partition(".")[0] for name in declared.packages} == LIBRARY
    assert not declared.py_modules
    folders = {Path(name).parent for name in project_files(ROOT) if name.endswith(".py")}
    assert {str(one).replace("/", ".") for one in folders if one.parts and one.parts[0] in LIBRARY} == set(
        declared.packages
    )


def test_every_file_of_the_library_is_installed(declared: Distribution):
    patterns = ("*.py", *declared.package_data[""])
    for name in project_files(ROOT):
        path = Path(name)
        if path.parts[0] in LIBRARY:
            assert any(path.match(pattern) for pattern in patterns), name


def test_what_it_requires_is_what_speaking_needs(declared: Distribution):
    lines = (ROOT / "requirements-speak.txt").read_text().splitlines()
    assert set(map(Requirement, declared.install_requires)) == set(map(Requirement, lines))
