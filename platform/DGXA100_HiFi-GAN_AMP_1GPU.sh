#!/usr/bin/env bash
# Trains HiFi-GAN on 1 GPU of NVIDIA DGX A100 (A100 80GB) in mixed precision; arguments go to train.py.
NUM_GPUS=1 BATCH_SIZE=128 GRAD_ACCUMULATION=1 AMP=true \
    exec bash "$(dirname "${BASH_SOURCE[0]}")/../scripts/train_lj22khz.sh" --no_amp_grouped_conv "$@"
