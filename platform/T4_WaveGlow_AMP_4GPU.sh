#!/usr/bin/env bash
# Trains WaveGlow on 4 GPUs of NVIDIA T4 (16GB) in mixed precision; arguments go to train.py.
MODEL=WaveGlow source "$(dirname "${BASH_SOURCE[0]}")/../scripts/train.sh" NUM_GPUS=4 BS=10 AMP=true "$@"
