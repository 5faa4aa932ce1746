#!/usr/bin/env bash
# Trains Jasper on 8 GPUs of NVIDIA DGX-1 (V100 16GB) in float32; arguments go to train.py.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"
MODEL=Jasper run_script train NUM_GPUS=8 BS=16 GRAD_ACCUMULATION=4 AMP=false "$@"
