#!/usr/bin/env bash
# Tests and measures this toolkit on one GPU within so many minutes, and leaves tables in OUT/gpu.md. The most telling
# steps come first: training in bfloat16, inference. A step that takes too long, or is stopped, says what it had.
#   bash scripts/benchmarks/gpu.sh OUT
#   bash scripts/benchmarks/gpu.sh OUT --only training inference --minutes 4  # some of it, in less time
#   bash scripts/benchmarks/gpu.sh OUT --cpu  # small work on the CPU, to see that all of it runs
# PYTHON=python3 takes one that has what requirements.txt lists. Arguments go to scripts/benchmarks/gpu.py.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh" && run_python -m scripts.benchmarks.gpu "$@"
