#!/usr/bin/env bash
# Trains HiFi-GAN on 1 GPU of NVIDIA DGX-1 (V100 16GB) in FP32; arguments go to train.py.
NUM_GPUS=1 BATCH_SIZE=32 GRAD_ACCUMULATION=4 AMP=false \
    exec bash "$(dirname "${BASH_SOURCE[0]}")/../scripts/train_lj22khz.sh" "$@"
