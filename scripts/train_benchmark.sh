#!/usr/bin/env bash
# Times training of MODEL (HiFi-GAN, WaveGlow, FastPitch, Tacotron2, Harmonic, Jasper) by train.py itself, and prints one table.
#   NUM_GPUS="1 8" AMP="false true" bash scripts/train_benchmark.sh
#   NUM_GPUS=0 BS=4 GRAD_ACCUMULATION=1 EPOCHS=2 CLIPS=40 bash scripts/train_benchmark.sh --preset v3  # a laptop
#   LARGEST_BATCH=true MODEL=WaveGlow NUM_GPUS=0 MAX_BATCH_SIZE=4 WN_CHANNELS=64 STEPS=2 bash scripts/train_benchmark.sh
# NUM_GPUS, AMP and BS may be several, separated by spaces: each combination is a run. Without LJSpeech-1.1, or LibriSpeech
# of Jasper, models train on noise. LARGEST_BATCH searches for the largest batch that fits. Arguments go to train.py.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run train_benchmark "$@"
