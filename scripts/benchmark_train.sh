#!/usr/bin/env bash
# Measures training of a full-size model on noise: scripts/benchmark.sh train.
#   NUM_GPUS=0 bash scripts/benchmark_train.sh  # on the CPU
#   NUM_GPUS=1 BS=64 GRAD_ACCUMULATION=4 bash scripts/benchmark_train.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run benchmark train "$@"
