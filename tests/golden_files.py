"""Reading of the goldens: where they lie, what their JSON lists, and a case's JSON with its tensors."""

import fcntl
import hashlib
import json
import os
import shutil
import tarfile
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file
from torch import Tensor

from common.config import AudioConfig

SHARED = Path(__file__).resolve().parents[2] / "shared"
PACKED = Path(__file__).resolve().parent / "goldens"


def _unpacked() -> Path:
    """The folder of the goldens that come with the project, which the first process of a run unpacks."""
    archives = sorted(PACKED.glob("*.tar.xz"))
    version = hashlib.sha256(b"".join(archive.read_bytes() for archive in archives)).hexdigest()[:16]
    cache = PACKED.parents[1] / ".pytest_cache" / "goldens"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (cache / version).is_dir():
            for old in [path for path in cache.iterdir() if path.is_dir()]:
                shutil.rmtree(old)
            for archive in archives:
                with tarfile.open(archive) as file:
                    file.extractall(cache / "partial", filter="data")
            (cache / "partial").rename(cache / version)
    return cache / version


def _golden_folder() -> Path:
    """The folder of the variable GOLDENS, else the complete one beside the project, else the one that comes with it."""
    if os.environ.get("GOLDENS"):
        return Path(os.environ["GOLDENS"]).resolve()
    complete = SHARED / "goldens"
    return complete if complete.is_dir() else _unpacked()


GOLDENS = _golden_folder()


def read_golden(path: Path, *keys: str | int) -> Any:
    """The content of a JSON file, or what it holds under ``keys``."""
    return reduce(getitem, keys, json.loads(path.read_text(encoding="utf-8")))


def entries(file: str, *keys: str | int) -> dict:
    """What a golden's JSON lists by name, to parametrize by; nothing, so that tests skip, without the file."""
    if not (GOLDENS / file).is_file():
        return {}
    found = read_golden(GOLDENS / file, *keys)
    assert found, f"{GOLDENS / file} lists nothing under {keys}"
    return found


def listed(file: str, *keys: str | int) -> list:
    """The names or the items that a golden's JSON lists, to parametrize by."""
    return list(entries(file, *keys))


def matching(pattern: str) -> list[str]:
    """Goldens whose paths match, to parametrize by; recordings come with the complete goldens only."""
    found = sorted(path.relative_to(GOLDENS).as_posix() for path in GOLDENS.glob(pattern))
    assert found or pattern.endswith(".flac"), f"{GOLDENS} has no {pattern}"
    return found


def recordings(pattern: str) -> list[Path]:
    """The recordings whose paths match; without any the test skips."""
    found = [GOLDENS / path for path in matching(pattern)]
    return found or pytest.skip(f"{pattern} is not in {GOLDENS}")


def first_matching(pattern: str) -> Path:
    """The first golden whose path matches."""
    return GOLDENS / matching(pattern)[0]


def full_size_listings(pattern: str) -> list:
    """Listings of full-size networks: the path of each, and the options by which it is not the default."""
    return [
        (file, {word.lstrip("-").replace("-", "_") for word in words if word.startswith("--")})
        for file in matching(pattern)
        for words in [read_golden(GOLDENS / file, "args").split()]
    ]


def checkpoint_layouts(folder: str) -> dict[str, dict]:
    """The layouts of a folder's checkpoints by their names, to parametrize by."""
    layouts = entries(f"{folder}/checkpoint_layout.json")
    return {name.removesuffix(".pt"): layout for name, layout in layouts.items() if name.endswith(".pt")}


def read_case(folder: Path, name: str) -> tuple[dict, dict[str, Tensor]]:
    """A case's JSON and tensors, which lie side by side."""
    return read_golden(folder / f"{name}.json"), load_file(folder / f"{name}.safetensors")


def audio_config(values: dict, **others: Any) -> AudioConfig:
    """The AudioConfig of the settings of a golden, by any of the originals' names."""
    theirs = {"n_mel_channels": "n_mels", "num_mels": "n_mels", "n_fft": "filter_length", "hop_size": "hop_length"}
    theirs |= {"win_size": "win_length", "fmin": "mel_fmin", "fmax": "mel_fmax", "fmax_input": "mel_fmax"}
    ours = {theirs.get(name, name): value for name, value in values.items()}
    known = {name: value for name, value in ours.items() if name in AudioConfig.__dataclass_fields__}
    return AudioConfig(**{**known, **others})


def group(tensors: dict[str, Tensor], name: str) -> dict[str, Tensor]:
    """The tensors of a group, without its name before theirs."""
    prefix = name + "."
    return {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}


def series(tensors: dict[str, Tensor], name: str) -> list[Tensor]:
    """The tensors named ``name`` and a count from 0, in the order of the count."""
    found: list[Tensor] = []
    while (key := f"{name}{len(found)}") in tensors:
        found.append(tensors[key])
    assert found, f"no {name}0 in {sorted(tensors)[:20]}"
    return found
