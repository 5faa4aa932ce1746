#!/usr/bin/env bash
# Reduces a checkpoint to what inference needs: one network, with EMA weights if there are any.
#   DTYPE=bfloat16 bash scripts/strip_checkpoint.sh output/HiFi-GAN_checkpoint_6500.pt hifigan.pt  # or float32, float16
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run_python -m speech_toolkit strip --dtype "${DTYPE:-float32}" "$@"
