#!/usr/bin/env bash
# Trains FastPitch on 4 GPUs of NVIDIA T4 (16GB) in FP32; arguments go to train.py.
MODEL=FastPitch source "$(dirname "${BASH_SOURCE[0]}")/../scripts/train.sh" NUM_GPUS=4 BS=32 GRAD_ACCUMULATION=2 AMP=false "$@"
