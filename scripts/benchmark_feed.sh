#!/usr/bin/env bash
# Measures how many mel frames/s one training process is fed with, from files to its memory, and where the time goes.
#   bash scripts/benchmark_feed.sh
#   NUM_GPUS=0 bash scripts/benchmark_feed.sh --num-workers 2 --utterances 512 --json feed.json
# Arguments go to scripts/benchmarks/feed.py.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
use_python

: "${NUM_GPUS:=auto}" # `auto`: the GPU if there is one; 0: the CPU

command=("$PYTHON" -m scripts.benchmarks.feed)
add_flags command
exec_or_print "${command[@]}" "$@"
