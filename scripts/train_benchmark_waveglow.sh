#!/usr/bin/env bash
# Finds WaveGlow's largest batch: scripts/train_benchmark.sh with LARGEST_BATCH=true.
#   bash scripts/train_benchmark_waveglow.sh
#   NUM_GPUS=0 MAX_BATCH_SIZE=4 WN_CHANNELS=64 STEPS=2 bash scripts/train_benchmark_waveglow.sh  # a laptop
LARGEST_BATCH=true MODEL=${MODEL:-WaveGlow} source "$(dirname "${BASH_SOURCE[0]}")/train_benchmark.sh" "$@"
