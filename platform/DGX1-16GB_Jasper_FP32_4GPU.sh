#!/usr/bin/env bash
# Trains Jasper on 4 GPUs of NVIDIA DGX-1 (V100 16GB) in float32; arguments go to train.py.
MODEL=Jasper source "$(dirname "${BASH_SOURCE[0]}")/../scripts/train.sh" NUM_GPUS=4 BS=16 GRAD_ACCUMULATION=8 AMP=false "$@"
