#!/usr/bin/env bash
# Times Tacotron 2's decoder, full size with random weights: steps/s by batch size and precision.
#   bash scripts/benchmark_decoder.sh --batch-sizes 1 4 8 --steps 400 --symbols 128
#   bash scripts/benchmark_decoder.sh --training --batch-sizes 4  # the training step against plain autograd
# Arguments go to scripts/benchmarks/decoder.py.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
use_python

: "${NUM_GPUS:=auto}" # `auto`: the GPU if there is one; 0: the CPU

command=("$PYTHON" -m scripts.benchmarks.decoder)
add_flags command
exec_or_print "${command[@]}" "$@"
