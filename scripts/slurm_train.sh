#!/usr/bin/env bash
# Trains on several machines under Slurm; arguments go to train.py.
#   sbatch --nodes 2 scripts/slurm_train.sh
#   sbatch --nodes 4 --gpus-per-node 4 scripts/slurm_train.sh --ema-decay 0.999
#   MODEL=HiFi-GAN sbatch --nodes 2 scripts/slurm_train.sh  # or Tacotron2, WaveGlow, Harmonic, Jasper
#   TRAIN_SCRIPT=scripts/train_lj22khz.sh sbatch --nodes 2 scripts/slurm_train.sh  # the same, by the script's name
# sbatch passes variables on. BS is by default what makes the published global batch, or of Tacotron 2 and WaveGlow the
# published batch of one GPU. Submit it from the project's folder. Before the time limit, or when the job is preempted,
# every process is asked to finish its step and save; the job then goes back into the queue and resumes.
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --exclusive
#SBATCH --gpus-per-node=8
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=TERM@180
set -euo pipefail
if [ -z "${SLURM_SUBMIT_DIR:-}" ]; then
    source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
    die "this is not a Slurm job; submit it: sbatch --nodes 2 scripts/slurm_train.sh"
fi
# Slurm runs a copy of this file, so its own folder says nothing.
if ! cd -- "$SLURM_SUBMIT_DIR" >/dev/null 2>&1 || [ ! -f scripts/train.sh ]; then
    echo "error: ${SLURM_SUBMIT_DIR//[[:cntrl:]]/?} is not the project's folder; submit the job from there" >&2
    exit 1
fi
source scripts/lib.sh

: "${NUM_GPUS:=auto}" # GPUs of each machine; `auto`: what Slurm gives the job; 0: the CPU
: "${GRAD_ACCUMULATION:=1}" # micro-batches in an update
: "${TRAIN_SCRIPT:=scripts/train.sh}" # the training script whose MODEL is trained, instead of MODEL

[ "$NUM_GPUS" != auto ] || NUM_GPUS=${SLURM_GPUS_ON_NODE:-auto}
need_whole_numbers 1 99999 GRAD_ACCUMULATION BS BATCH_SIZE
need_whole_numbers 1 9999 SLURM_JOB_NUM_NODES
resolve_gpus
export MODEL NUM_GPUS GRAD_ACCUMULATION
tasks_per_node=$((NUM_GPUS > 0 ? NUM_GPUS : 1))
case "$TRAIN_SCRIPT" in
    scripts/train.sh) : "${MODEL:=FastPitch}" ;;
    scripts/train_lj22khz.sh) MODEL=HiFi-GAN ;;
    scripts/train_tacotron2.sh) MODEL=Tacotron2 ;;
    scripts/train_waveglow.sh) MODEL=WaveGlow ;;
    scripts/train_jasper.sh) MODEL=Jasper ;;
    *) die "TRAIN_SCRIPT=$(shown "$TRAIN_SCRIPT"): expected a training script, such as scripts/train_lj22khz.sh" ;;
esac
require_model FastPitch Tacotron2 HiFi-GAN WaveGlow Harmonic Jasper
n_tasks=$((SLURM_JOB_NUM_NODES * tasks_per_node))
: "${BATCH_SIZE:=}" # the same as BS
read -r global_batch several <<<"${GLOBAL_BATCH[$MODEL]}"
if [ -z "$several$BATCH_SIZE" ]; then
    batch=$((global_batch / (n_tasks * GRAD_ACCUMULATION)))
    export BS=${BS:-$((batch > 0 ? batch : 1))}
fi
export MASTER_ADDR MASTER_PORT=${PORT:-29500}
read -r MASTER_ADDR < <(scontrol show hostnames "$SLURM_JOB_NODELIST") # the first of them

# One task a GPU and no launcher between: each process gets a signal exactly once.
# --wait lets slower processes save after the first has ended.
trap ':' TERM # the processes get the signal from Slurm too; this shell must outlive them
status=0
export TASKS_PER_NODE=$tasks_per_node
srun --ntasks-per-node="$tasks_per_node" --ntasks="$n_tasks" --kill-on-bad-exit=0 --wait=120 \
    bash -c 'RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS LOCAL_WORLD_SIZE=$TASKS_PER_NODE \
        exec bash scripts/train.sh --resume "$@"' train "$@" || status=$?

if [ "$status" -eq 143 ]; then # 128 + SIGTERM: stopped early with its state saved
    say "stopped early; the job goes back into the queue"
    scontrol requeue "$SLURM_JOB_ID" || true # a preempted job is in the queue already
fi
exit "$status"
