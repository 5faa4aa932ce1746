#!/usr/bin/env bash
# Trains Tacotron 2 on 8 GPUs of NVIDIA DGX-1 (V100 16GB) in mixed precision; arguments go to train.py.
MODEL=Tacotron2 source "$(dirname "${BASH_SOURCE[0]}")/../scripts/train.sh" NUM_GPUS=8 BS=104 AMP=true "$@"
