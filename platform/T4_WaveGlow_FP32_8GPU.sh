#!/usr/bin/env bash
# Trains WaveGlow on 8 GPUs of NVIDIA T4 (16GB) in FP32; arguments go to train.py.
NUM_GPUS=8 BS=4 GRAD_ACCUMULATION=1 AMP=false EPOCHS=${EPOCHS:-1001} \
    exec bash "$(dirname "${BASH_SOURCE[0]}")/../scripts/train_waveglow.sh" "$@"
