#!/usr/bin/env bash
# Trains HiFi-GAN on 8 GPUs of NVIDIA DGX A100 (A100 80GB) in TF32; arguments go to train.py.
MODEL=HiFi-GAN source "$(dirname "${BASH_SOURCE[0]}")/../scripts/train.sh" NUM_GPUS=8 BS=16 AMP=false "$@"
