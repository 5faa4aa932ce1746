#!/usr/bin/env bash
# Trains Tacotron 2 on 4 GPUs of NVIDIA DGX A100 (A100 80GB) in mixed precision; arguments go to train.py.
NUM_GPUS=4 BS=128 GRAD_ACCUMULATION=1 AMP=true \
    exec bash "$(dirname "${BASH_SOURCE[0]}")/../scripts/train_tacotron2.sh" "$@"
