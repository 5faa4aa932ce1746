#!/usr/bin/env bash
# Measures the memory and time of FastPitch's aligner and of the naive form of its distances:
#   bash scripts/benchmark_aligner.sh [--batch-size N] [--frames N] [--tokens N] [--cuda]
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
run_python -m scripts.benchmarks.aligner "$@"
