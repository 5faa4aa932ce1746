#!/usr/bin/env bash
# Trains HiFi-GAN on 4 GPUs of NVIDIA DGX A100 (A100 80GB) in mixed precision; arguments go to train.py.
MODEL=HiFi-GAN source "$(dirname "${BASH_SOURCE[0]}")/../scripts/train.sh" NUM_GPUS=4 BS=32 AMP=true --no_amp_grouped_conv "$@"
