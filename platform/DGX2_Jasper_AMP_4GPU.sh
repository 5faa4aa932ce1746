#!/usr/bin/env bash
# Trains Jasper on 4 GPUs of NVIDIA DGX-2 (V100 32GB) in mixed precision; arguments go to train.py.
MODEL=Jasper source "$(dirname "${BASH_SOURCE[0]}")/../scripts/train.sh" NUM_GPUS=4 BS=64 GRAD_ACCUMULATION=2 AMP=true "$@"
