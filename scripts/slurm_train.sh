#!/usr/bin/env bash
# Trains on several machines under Slurm; arguments go to train.py.
#   sbatch --nodes 2 scripts/slurm_train.sh
#   sbatch --nodes 4 --gpus-per-node 4 scripts/slurm_train.sh --ema-decay 0.999
#   MODEL=HiFi-GAN sbatch --nodes 2 scripts/slurm_train.sh  # or Tacotron2, WaveGlow, Harmonic, Jasper
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
source "${SLURM_SUBMIT_DIR:-$(dirname "${BASH_SOURCE[0]}")/..}/scripts/lib.sh" && run slurm_train "$@"
