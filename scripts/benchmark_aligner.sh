#!/usr/bin/env bash
# Measures the memory and time of FastPitch's aligner beside the naive form of its distances:
#   bash scripts/benchmark_aligner.sh [--batch-size N] [--frames N] [--tokens N] [--cuda]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
use_python
cd "$ROOT"
exec "$PYTHON" -m scripts.benchmarks.aligner "$@"
