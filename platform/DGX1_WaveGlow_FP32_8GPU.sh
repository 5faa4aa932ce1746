#!/usr/bin/env bash
# Trains WaveGlow on 8 GPUs of NVIDIA DGX-1 (V100 16GB) in FP32; arguments go to train.py.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"
MODEL=WaveGlow run_script train NUM_GPUS=8 BS=4 AMP=false "$@"
