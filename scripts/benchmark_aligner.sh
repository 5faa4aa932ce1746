#!/usr/bin/env bash
# Measures the memory and time of FastPitch's aligner and of the naive form of its distances.
#   bash scripts/benchmark_aligner.sh
#   NUM_GPUS=0 bash scripts/benchmark_aligner.sh --batch-size 4 --frames 400 --tokens 80
# Arguments go to scripts/benchmarks/aligner.py.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
use_python

: "${NUM_GPUS:=auto}" # `auto`: the GPU if there is one; 0: the CPU

command=("$PYTHON" -m scripts.benchmarks.aligner)
add_flags command
exec_or_print "${command[@]}" "$@"
