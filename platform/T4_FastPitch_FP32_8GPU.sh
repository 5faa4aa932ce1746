#!/usr/bin/env bash
# Trains FastPitch on 8 GPUs of NVIDIA T4 (16GB) in FP32; arguments go to train.py.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"
MODEL=FastPitch run_script train NUM_GPUS=8 BS=32 AMP=false "$@"
