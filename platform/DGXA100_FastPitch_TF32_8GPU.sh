#!/usr/bin/env bash
# Trains FastPitch on 8 GPUs of NVIDIA DGX A100 (A100 40GB) in TF32; arguments go to train.py.
MODEL=FastPitch source "$(dirname "${BASH_SOURCE[0]}")/../scripts/train.sh" NUM_GPUS=8 BS=32 AMP=false "$@"
