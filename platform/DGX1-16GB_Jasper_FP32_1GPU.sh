#!/usr/bin/env bash
# Trains Jasper on 1 GPU of NVIDIA DGX-1 (V100 16GB) in float32; arguments go to train.py.
MODEL=Jasper source "$(dirname "${BASH_SOURCE[0]}")/../scripts/train.sh" NUM_GPUS=1 BS=16 GRAD_ACCUMULATION=32 AMP=false "$@"
