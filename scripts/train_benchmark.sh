#!/usr/bin/env bash
# Times training of MODEL (HiFi-GAN, WaveGlow, FastPitch, Tacotron2, Harmonic, Jasper) by train.py, and prints one table.
#   NUM_GPUS="1 8" AMP="false true" bash scripts/train_benchmark.sh  # each combination is a run; arguments go to train.py
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run train_benchmark "$@"
