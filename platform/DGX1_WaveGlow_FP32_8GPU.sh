#!/usr/bin/env bash
# Trains WaveGlow on 8 GPUs of NVIDIA DGX-1 (V100 16GB) in FP32; arguments go to train.py.
MODEL=WaveGlow source "$(dirname "${BASH_SOURCE[0]}")/../scripts/train.sh" NUM_GPUS=8 BS=4 AMP=false "$@"
