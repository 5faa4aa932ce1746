#!/usr/bin/env bash
# Trains FastPitch on 1 GPU of NVIDIA DGX-1 (V100 16GB) in FP32; arguments go to train.py.
MODEL=FastPitch source "$(dirname "${BASH_SOURCE[0]}")/../scripts/train.sh" NUM_GPUS=1 BS=32 GRAD_ACCUMULATION=8 AMP=false "$@"
