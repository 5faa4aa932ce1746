#!/usr/bin/env bash
# Trains Tacotron 2 on 1 GPU of NVIDIA T4 (16GB) in FP32; arguments go to train.py.
MODEL=Tacotron2 source "$(dirname "${BASH_SOURCE[0]}")/../scripts/train.sh" NUM_GPUS=1 BS=48 AMP=false "$@"
