#!/usr/bin/env bash
# Trains HiFi-GAN on 8 GPUs of NVIDIA T4 (16GB) in FP32; arguments go to train.py.
MODEL=HiFi-GAN source "$(dirname "${BASH_SOURCE[0]}")/../scripts/train.sh" NUM_GPUS=8 BS=16 AMP=false "$@"
