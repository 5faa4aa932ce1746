#!/usr/bin/env bash
# Trains Jasper on 16 GPUs of NVIDIA DGX-2 (V100 32GB) in mixed precision; arguments go to train.py.
MODEL=Jasper source "$(dirname "${BASH_SOURCE[0]}")/../scripts/train.sh" NUM_GPUS=16 BS=64 GRAD_ACCUMULATION=1 AMP=true "$@"
