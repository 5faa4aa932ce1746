#!/usr/bin/env bash
# Measures training of the full-size FastPitch on this machine: unpadded mel frames/s in each precision.
#   bash scripts/benchmark_train.sh                    on the CPU
#   NUM_GPUS=1 BS=64 GRAD_ACCUMULATION=4 bash scripts/benchmark_train.sh
# Arguments go to scripts/benchmark_train.py (--steps, --compile).
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"
use_python

: "${NUM_GPUS:=0}" # 0 measures the CPU
: "${BS:=16}"
: "${GRAD_ACCUMULATION:=4}"

require_gpus "$NUM_GPUS"
command=("$PYTHON")
[ "$NUM_GPUS" -le 1 ] || command+=(-m torch.distributed.run --standalone --nproc-per-node "$NUM_GPUS")
command+=(-m scripts.benchmark_train --batch-size "$BS" --accumulation "$GRAD_ACCUMULATION")
[ "$NUM_GPUS" -eq 0 ] || command+=(--cuda)
exec "${command[@]}" "$@"
