#!/usr/bin/env bash
# Trains Jasper on 16 GPUs of NVIDIA DGX-2 (V100 32GB) in mixed precision; arguments go to train.py.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"
MODEL=Jasper run_script train NUM_GPUS=16 BS=64 GRAD_ACCUMULATION=1 AMP=true "$@"
