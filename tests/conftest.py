"""Shared fixtures: where the goldens and the real recordings lie, and one thread for repeatable numbers."""

from pathlib import Path

import pytest
import torch

SHARED = Path(__file__).resolve().parents[2] / "shared"


def pytest_configure() -> None:
    torch.set_num_threads(1)


def _folder(path: Path) -> Path:
    if not path.is_dir():
        pytest.skip(f"{path} is absent")
    return path


@pytest.fixture(scope="session")
def goldens() -> Path:
    """Folder of numbers computed with the original implementations."""
    return _folder(SHARED / "goldens")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real recorded speech."""
    return _folder(SHARED / "data")
