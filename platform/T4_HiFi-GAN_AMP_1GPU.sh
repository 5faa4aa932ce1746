#!/usr/bin/env bash
# Trains HiFi-GAN on 1 GPU of NVIDIA T4 (16GB) in mixed precision; arguments go to train.py.
NUM_GPUS=1 BATCH_SIZE=32 GRAD_ACCUMULATION=4 AMP=true \
    exec bash "$(dirname "${BASH_SOURCE[0]}")/../scripts/train_lj22khz.sh" "$@"
