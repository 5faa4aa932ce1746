#!/usr/bin/env bash
# Finds WaveGlow's largest batch: scripts/train_benchmark.sh with LARGEST_BATCH=true and MODEL=WaveGlow, or another.
LARGEST_BATCH=true MODEL=${MODEL:-WaveGlow} exec bash "$(dirname "${BASH_SOURCE[0]}")/train_benchmark.sh" "$@"
