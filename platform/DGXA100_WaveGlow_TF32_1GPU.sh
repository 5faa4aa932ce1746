#!/usr/bin/env bash
# Trains WaveGlow on 1 GPU of NVIDIA DGX A100 (A100 80GB) in TF32; arguments go to train.py.
MODEL=WaveGlow source "$(dirname "${BASH_SOURCE[0]}")/../scripts/train.sh" NUM_GPUS=1 BS=4 AMP=false "$@"
