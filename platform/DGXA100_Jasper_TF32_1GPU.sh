#!/usr/bin/env bash
# Trains Jasper on 1 GPU of NVIDIA DGX A100 (A100 80GB) in TF32; arguments go to train.py.
NUM_GPUS=1 BS=64 GRAD_ACCUMULATION=8 AMP=false \
    exec bash "$(dirname "${BASH_SOURCE[0]}")/../scripts/train_jasper.sh" "$@"
