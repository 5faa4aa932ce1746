#!/usr/bin/env bash
# Trains FastPitch on 4 GPUs of NVIDIA T4 (16GB) in mixed precision; arguments go to train.py.
MODEL=FastPitch source "$(dirname "${BASH_SOURCE[0]}")/../scripts/train.sh" NUM_GPUS=4 BS=64 AMP=true "$@"
