#!/usr/bin/env bash
# Trains Jasper on 8 GPUs of NVIDIA T4 (16GB) in float32; arguments go to train.py.
MODEL=Jasper source "$(dirname "${BASH_SOURCE[0]}")/../scripts/train.sh" NUM_GPUS=8 BS=16 GRAD_ACCUMULATION=4 AMP=false "$@"
