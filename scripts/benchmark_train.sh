#!/usr/bin/env bash
# Measures training of a full-size model on this machine, on made-up data: unpadded mel frames/s in each precision.
#   NUM_GPUS=0 bash scripts/benchmark_train.sh  # on the CPU
#   NUM_GPUS=1 BS=64 GRAD_ACCUMULATION=4 bash scripts/benchmark_train.sh
#   NUM_GPUS=1 BS=128 GRAD_ACCUMULATION=1 bash scripts/benchmark_train.sh --model HiFi-GAN
# Arguments go to scripts/benchmarks/train.py. To time train.py itself on a corpus, see scripts/train_benchmark.sh.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
use_python

: "${NUM_GPUS:=auto}" # `auto`: all there are; 0: the CPU
: "${BS:=16}" # utterances in a micro-batch of one process
: "${GRAD_ACCUMULATION:=4}" # micro-batches in an update

need_whole_numbers 1 99999 BS GRAD_ACCUMULATION
resolve_gpus
require_gpus "$NUM_GPUS"
command=("$PYTHON")
[ "$NUM_GPUS" -le 1 ] || command+=("${TORCHRUN[@]}" --standalone --nproc-per-node "$NUM_GPUS")
command+=(-m scripts.benchmarks.train --batch-size "$BS" --accumulation "$GRAD_ACCUMULATION")
[ "$NUM_GPUS" -eq 0 ] || command+=(--cuda)
exec_or_print "${command[@]}" "$@"
