"""Programs run by several processes that train together."""

import os
import socket
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def free_port() -> int:
    """A port of this machine that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run_ranks(program: str, folder: Path, *, world_size: int = 2, timeout: int = 240) -> None:
    """Run a Python program, which gets ``folder`` as its argument, in gloo processes of this machine."""
    common = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "WORLD_SIZE": str(world_size),
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}",
    }
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(folder)],
            env=os.environ | common | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.DEVNULL,
        )
        for rank in range(world_size)
    ]
    assert [process.wait(timeout=timeout) for process in processes] == [0] * world_size
