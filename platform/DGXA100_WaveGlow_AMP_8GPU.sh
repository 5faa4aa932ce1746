#!/usr/bin/env bash
# Trains WaveGlow on 8 GPUs of NVIDIA DGX A100 (A100 80GB) in mixed precision; arguments go to train.py.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"
MODEL=WaveGlow run_script train NUM_GPUS=8 BS=10 AMP=true "$@"
