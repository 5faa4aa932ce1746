#!/usr/bin/env bash
# Trains Tacotron 2 on 4 GPUs of NVIDIA T4 (16GB) in mixed precision; arguments go to train.py.
MODEL=Tacotron2 source "$(dirname "${BASH_SOURCE[0]}")/../scripts/train.sh" NUM_GPUS=4 BS=104 AMP=true "$@"
