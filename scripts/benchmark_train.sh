#!/usr/bin/env bash
# The same as scripts/train_benchmark.sh: NUM_GPUS=1 BS=64 MODEL=FastPitch bash scripts/benchmark_train.sh
source "$(dirname "${BASH_SOURCE[0]}")/train_benchmark.sh" "$@"
