#!/usr/bin/env bash
# Trains Jasper on 8 GPUs of NVIDIA DGX-1 (V100 32GB) in float32; arguments go to train.py.
MODEL=Jasper source "$(dirname "${BASH_SOURCE[0]}")/../scripts/train.sh" NUM_GPUS=8 BS=32 GRAD_ACCUMULATION=2 AMP=false "$@"
