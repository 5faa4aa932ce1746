#!/usr/bin/env bash
# Trains MODEL (FastPitch, Tacotron2, HiFi-GAN, WaveGlow, Harmonic or Jasper) as published; arguments go to train.py.
#   DATASET_PATH=my_voice NAME=my_voice SIZE=small LANGUAGE=en-us bash scripts/train.sh  # on a laptop, into output/my_voice
#   MODEL=HiFi-GAN NUM_GPUS=1 GRAD_ACCUMULATION=8 AMP=true bash scripts/train.sh --no_amp_grouped_conv
# For several machines, run it on each with NNODES and MASTER_ADDR (host of the first) set.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run train "$@"
