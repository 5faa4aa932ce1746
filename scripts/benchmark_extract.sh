#!/usr/bin/env bash
# Times the extraction of mel-spectrograms and pitch on real recordings.
#   bash scripts/benchmark_extract.sh
#   bash scripts/benchmark_extract.sh --dataset-path my_voice --repeat 3 --num-workers 2
# Arguments go to scripts/benchmarks/extract.py.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
run_python -m scripts.benchmarks.extract "$@"
