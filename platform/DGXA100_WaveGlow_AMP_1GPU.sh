#!/usr/bin/env bash
# Trains WaveGlow on 1 GPU of NVIDIA DGX A100 (A100 80GB) in mixed precision; arguments go to train.py.
NUM_GPUS=1 BS=10 GRAD_ACCUMULATION=1 AMP=true EPOCHS=${EPOCHS:-1001} \
    exec bash "$(dirname "${BASH_SOURCE[0]}")/../scripts/train_waveglow.sh" "$@"
