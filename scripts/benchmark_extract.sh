#!/usr/bin/env bash
# Times the extraction of mel-spectrograms and pitch on real recordings:
#   bash scripts/benchmark_extract.sh [--dataset-path FOLDER] [--repeat N] [--num-workers N]
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
run_python -m scripts.benchmarks.extract "$@"
