#!/usr/bin/env bash
# Tests and measures this toolkit on one GPU, and leaves tables in OUT/gpu.md. The most telling
# steps come first: recorded updates, training, inference; each is interrupted after 150 s, and says what it had.
#   bash scripts/benchmarks/gpu.sh OUT
#   bash scripts/benchmarks/gpu.sh OUT --only recorded training  # some of it, in less time
#   bash scripts/benchmarks/gpu.sh OUT --cpu  # small work on the CPU, to see that all of it runs
# PYTHON=python3 takes one that has what requirements.txt lists. Arguments go to scripts/benchmarks/gpu.py.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh" && run_python -m scripts.benchmarks.gpu "$@"
