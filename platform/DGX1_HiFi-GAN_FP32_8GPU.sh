#!/usr/bin/env bash
# Trains HiFi-GAN on 8 GPUs of NVIDIA DGX-1 (V100 16GB) in FP32; arguments go to train.py.
NUM_GPUS=8 BATCH_SIZE=16 GRAD_ACCUMULATION=1 AMP=false \
    exec bash "$(dirname "${BASH_SOURCE[0]}")/../scripts/train_lj22khz.sh" "$@"
