#!/usr/bin/env bash
# Trains FastPitch on 1 GPU of NVIDIA DGX A100 (A100 40GB) in mixed precision; arguments go to train.py.
MODEL=FastPitch source "$(dirname "${BASH_SOURCE[0]}")/../scripts/train.sh" NUM_GPUS=1 BS=128 GRAD_ACCUMULATION=2 AMP=true "$@"
