#!/usr/bin/env bash
# Tests and measures this toolkit on one GPU within nine minutes, and leaves a table in OUT/gpu.md.
#   bash scripts/benchmarks/gpu.sh OUT
#   bash scripts/benchmarks/gpu.sh OUT --only training inference  # some of it, in less time
#   bash scripts/benchmarks/gpu.sh OUT --cpu  # small work on the CPU, to see that all of it runs
# PYTHON=python3 takes one that has what requirements.txt lists. Arguments go to scripts/benchmarks/gpu.py.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
run_python -m scripts.benchmarks.gpu "$@"
