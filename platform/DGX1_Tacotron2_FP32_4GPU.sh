#!/usr/bin/env bash
# Trains Tacotron 2 on 4 GPUs of NVIDIA DGX-1 (V100 16GB) in FP32; arguments go to train.py.
NUM_GPUS=4 BS=48 GRAD_ACCUMULATION=1 AMP=false \
    exec bash "$(dirname "${BASH_SOURCE[0]}")/../scripts/train_tacotron2.sh" "$@"
