#!/usr/bin/env bash
# Writes a checkpoint of another implementation in this toolkit's format, recognized by what is in it.
#   bash scripts/convert_checkpoint.sh nvidia_fastpitch_210824.pt pretrained_models/voice.pt
#   bash scripts/convert_checkpoint.sh g_02500000 vocoder.pt                       # with do_02500000 and config.json beside it
#   bash scripts/convert_checkpoint.sh weights.pt voice.pt --config config.json    # weights without their configuration
# SOURCE is a file of FastPitch 1.0 or 1.1, Tacotron 2, WaveGlow, HiFi-GAN (NVIDIA's or the authors') or Jasper; TARGET
# must not exist yet. Weights that are missing or left over are listed and refused, unless --partial is given.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
run_python -m scripts.convert_checkpoint "$@"
