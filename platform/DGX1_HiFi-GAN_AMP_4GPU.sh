#!/usr/bin/env bash
# Trains HiFi-GAN on 4 GPUs of NVIDIA DGX-1 (V100 16GB) in mixed precision; arguments go to train.py.
MODEL=HiFi-GAN source "$(dirname "${BASH_SOURCE[0]}")/../scripts/train.sh" NUM_GPUS=4 BS=32 AMP=true "$@"
