#!/usr/bin/env bash
# Trains on several machines under Slurm; arguments go to train.py.
#   sbatch --nodes 2 scripts/slurm_train.sh
#   sbatch --nodes 4 --gpus-per-node 4 scripts/slurm_train.sh --ema-decay 0.999
#   MODEL=HiFi-GAN sbatch --nodes 2 scripts/slurm_train.sh  # or Tacotron2, WaveGlow, Harmonic, Jasper; other variables as of train.sh
# BS is by default what makes the published global batch, or of Tacotron 2 and WaveGlow the published batch of one GPU.
# Submit it from the project's folder. At the time limit or when preempted it saves, goes back into the queue and resumes.
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --exclusive
#SBATCH --gpus-per-node=8
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=TERM@180
# Slurm runs a copy of this file, so its own folder says nothing.
source "${SLURM_SUBMIT_DIR:-$(dirname "${BASH_SOURCE[0]}")/..}/scripts/lib.sh" && answer_help "$@" || exit 1
[ -n "${SLURM_JOB_ID:-}" ] || fail 1 "this is not a Slurm job; submit it: sbatch --nodes 2 scripts/slurm_train.sh"
[ "${NUM_GPUS:-auto}" != auto ] || NUM_GPUS=${SLURM_GPUS_ON_NODE:-0}
export NUM_GPUS MASTER_PORT=${PORT:-29500} LOCAL_WORLD_SIZE=$((NUM_GPUS > 0 ? NUM_GPUS : 1))
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1) && export MASTER_ADDR
export WORLD_SIZE=$((SLURM_JOB_NUM_NODES * LOCAL_WORLD_SIZE)) # one task a GPU, so that each process gets a signal once
trap : TERM                                                   # the tasks get it from Slurm too; this script outlives them
status=0
# --wait lets slower processes save after the first has ended.
srun --ntasks-per-node="$LOCAL_WORLD_SIZE" --ntasks="$WORLD_SIZE" --kill-on-bad-exit=0 --wait=120 \
    bash -c 'RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID exec bash "$0" --resume "$@"' \
    "${TRAIN_SCRIPT:-$ROOT/scripts/train.sh}" "$@" || status=$?
if [ "$status" = 143 ]; then # stopped early with its state saved; a preempted job is in the queue already
    echo "stopped early; the job goes back into the queue"
    scontrol requeue "$SLURM_JOB_ID" || true
fi
exit "$status"
