"""Programs run by several processes that train together."""

import os
import socket
import subprocess
import sys
from pathlib import Path

from limits import HANG_LIMIT
from shell import ROOT


def free_port() -> int:
    """A port of this machine that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


# One process imports what the program names above an empty line, which takes seconds, and forks the others before work.
_LAUNCHER = """
import os, sys
import torch._dynamo
imports, _, work = sys.argv.pop(1).rpartition("\\n\\n")
exec(imports)
program = compile(work, "<rank>", "exec")
children = []
for rank in range(int(os.environ["WORLD_SIZE"])):
    child = os.fork()
    if child == 0:
        os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
        exec(program)
        sys.exit()
    children.append(child)
sys.exit(max(os.waitpid(child, 0)[1] for child in children) != 0)
"""


def run_ranks(program: str, folder: Path, *, world_size: int = 2) -> None:
    """Run a Python program, which gets ``folder`` as its argument, in gloo processes of this machine."""
    settings = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "WORLD_SIZE": str(world_size),
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}",
    }
    command = [sys.executable, "-c", _LAUNCHER, program, str(folder)]
    subprocess.run(command, env=os.environ | settings, stdout=subprocess.DEVNULL, timeout=HANG_LIMIT, check=True)
