#!/usr/bin/env bash
# Trains HiFi-GAN on 4 GPUs of NVIDIA DGX-1 (V100 16GB) in mixed precision; arguments go to train.py.
NUM_GPUS=4 BATCH_SIZE=32 GRAD_ACCUMULATION=1 AMP=true \
    exec bash "$(dirname "${BASH_SOURCE[0]}")/../scripts/train_lj22khz.sh" "$@"
