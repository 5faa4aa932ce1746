#!/usr/bin/env bash
# Times training of MODEL (HiFi-GAN, WaveGlow, FastPitch, Tacotron2, Jasper) by train.py itself, and prints one table:
# frames/s or, of Jasper, sequences/s in the steady state, with the speed-up of mixed precision and the scaling over GPUs.
#   NUM_GPUS="1 8" AMP="false true" bash scripts/train_benchmark.sh
#   NUM_GPUS=0 BS=4 GRAD_ACCUMULATION=1 EPOCHS=2 CLIPS=40 bash scripts/train_benchmark.sh --preset v3  # a laptop
#   MODEL=Jasper BATCH_SIZE_SEQ="32 64" NUM_GPUS_SEQ="1 4 8" bash scripts/train_benchmark.sh
#   MODEL=Jasper NUM_GPUS_SEQ=0 BATCH_SIZE_SEQ=4 SEQUENCES=32 MAX_DURATION=3 MODEL_CONFIG=jasper/configs/jasper_digits.yaml \
#       bash scripts/train_benchmark.sh  # a laptop
#   LARGEST_BATCH=true MODEL=WaveGlow NUM_GPUS=0 MAX_BATCH_SIZE=4 WN_CHANNELS=64 STEPS=2 bash scripts/train_benchmark.sh
# NUM_GPUS, AMP and BS may be several, separated by spaces: each combination is a run. Arguments go to train.py. Without
# LJSpeech-1.1 (DATASET_PATH) the embedded speaker makes a small corpus; its epochs are short, so read its figures with
# care. Without LibriSpeech Jasper trains on noise. LARGEST_BATCH finds the largest batch that fits, and prints frames/s
# by batch size; it needs no corpus, and its arguments are those of scripts/benchmarks/train.py. Other variables of
# scripts/train.sh apply too.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
run_script train_benchmark "$@"
