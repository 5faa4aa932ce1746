"""Training under Slurm: slurm_train.sh."""

import os
import signal
import subprocess
from dataclasses import dataclass

from common.errors import InputError
from common.options import read_variables
from scripts.launch import GLOBAL_BATCHES, MODELS, Gpus, Script, variable


@dataclass(frozen=True)
class SlurmVariables:
    """Variables of slurm_train.sh."""

    num_gpus: str = variable("NUM_GPUS", "auto", "GPUs of each machine; auto: what Slurm gives the job; 0: the CPU")
    model: str | None = variable("MODEL", None, "what is trained, by default FastPitch", choices=MODELS)
    accumulation: int = variable("GRAD_ACCUMULATION", 1, "micro-batches in an update", least=1, most=99999)
    bs: int | None = variable("BS", None, "micro-batch; empty: what makes the published batch", least=1)
    batch_size: int | None = variable("BATCH_SIZE", None, "the same as BS", least=1)
    port: int = variable("PORT", 29500, "where the processes meet on the first machine", least=1, most=65535)
    train_script: str = variable(
        "TRAIN_SCRIPT", "scripts/train.sh", "the training script whose MODEL is trained, instead of MODEL"
    )


_MODELS_OF_SCRIPTS = {
    "scripts/train.sh": None,
    "scripts/train_lj22khz.sh": "HiFi-GAN",
    "scripts/train_tacotron2.sh": "Tacotron2",
    "scripts/train_waveglow.sh": "WaveGlow",
    "scripts/train_jasper.sh": "Jasper",
}
# A task of Slurm, as a process of torch.distributed.
_TASK = """RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS LOCAL_WORLD_SIZE=$TASKS_PER_NODE \\
exec bash scripts/train.sh --resume "$@"
"""


def train_under_slurm(environ: dict[str, str], words: list[str]) -> None:
    """Start the processes of a Slurm job, and give the job back to the queue where they stopped early."""
    own: SlurmVariables = read_variables(SlurmVariables, environ)
    if own.train_script not in _MODELS_OF_SCRIPTS:
        raise InputError(
            f"TRAIN_SCRIPT={own.train_script}: expected a training script, such as scripts/train_lj22khz.sh"
        )
    model = _MODELS_OF_SCRIPTS[own.train_script] or own.model or "FastPitch"
    number = environ.get("SLURM_GPUS_ON_NODE", "auto") if own.num_gpus == "auto" else own.num_gpus
    gpus = Gpus(num_gpus=number).number()
    tasks_per_node = max(gpus, 1)
    n_tasks = int(environ["SLURM_JOB_NUM_NODES"]) * tasks_per_node
    least, most = GLOBAL_BATCHES[model]
    settings: dict[str, object] = {"MODEL": model, "NUM_GPUS": gpus, "GRAD_ACCUMULATION": own.accumulation}
    if (least == most or model == "Jasper") and own.bs is None and own.batch_size is None:
        settings["BS"] = max(1, least // (n_tasks * own.accumulation))
    listed = subprocess.run(
        ["scontrol", "show", "hostnames", environ["SLURM_JOB_NODELIST"]], stdout=subprocess.PIPE, text=True, check=True
    )
    settings |= {"MASTER_ADDR": listed.stdout.split()[0], "MASTER_PORT": own.port, "TASKS_PER_NODE": tasks_per_node}
    os.environ.update({name: str(value) for name, value in settings.items()})
    # One task a GPU and no launcher between: each process gets a signal exactly once.
    # --wait lets slower processes save after the first has ended.
    command = ["srun", f"--ntasks-per-node={tasks_per_node}", f"--ntasks={n_tasks}", "--kill-on-bad-exit=0"]
    signal.signal(signal.SIGTERM, lambda *_: None)  # the processes get it from Slurm too; this one must outlive them
    status = subprocess.run([*command, "--wait=120", "bash", "-c", _TASK, "train", *words], check=False).returncode
    if status == 128 + signal.SIGTERM:  # stopped early with its state saved
        print("stopped early; the job goes back into the queue", flush=True)
        # A preempted job is in the queue already.
        subprocess.run(["scontrol", "requeue", environ["SLURM_JOB_ID"]], check=False)
    raise SystemExit(status if status >= 0 else 128 - status)


SCRIPTS = {"slurm_train": Script(train_under_slurm, {SlurmVariables: ()}, calls="scripts/train.sh")}
