#!/usr/bin/env bash
# Writes what speaking or transcribing needs of a checkpoint alone: one network, with EMA weights if there are any.
#   bash scripts/strip_checkpoint.sh output/FastPitch_checkpoint_1500.pt  # makes output/FastPitch_inference_1500.pt
#   DTYPE=bfloat16 bash scripts/strip_checkpoint.sh output/HiFi-GAN_checkpoint_6500.pt hifigan.pt  # in half the bytes; DTYPE is float32, bfloat16 or float16
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run_python -m scripts.checkpoint_tools strip --dtype "${DTYPE:-float32}" "$@"
