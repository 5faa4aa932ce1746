#!/usr/bin/env bash
# Trains Jasper on 16 GPUs of NVIDIA DGX-2 (V100 32GB) in mixed precision; arguments go to train.py.
NUM_GPUS=16 BS=32 GRAD_ACCUMULATION=1 AMP=true \
    exec bash "$(dirname "${BASH_SOURCE[0]}")/../scripts/train_jasper.sh" "$@"
