#!/usr/bin/env bash
# Trains FastPitch on 1 GPU of NVIDIA T4 (16GB) in mixed precision; arguments go to train.py.
MODEL=FastPitch source "$(dirname "${BASH_SOURCE[0]}")/../scripts/train.sh" NUM_GPUS=1 BS=64 GRAD_ACCUMULATION=4 AMP=true "$@"
