#!/usr/bin/env bash
# Finds the largest batch that WaveGlow trains with on this machine, and prints mels/s and samples/s by batch size.
#   bash scripts/train_benchmark_waveglow.sh                     on the GPU, in each precision
#   PRECISIONS="fp32 float16" WN_CHANNELS=256 bash scripts/train_benchmark_waveglow.sh
#   MODEL=Tacotron2 BATCH_SIZE=16 bash scripts/train_benchmark_waveglow.sh       another model, from this batch size on
#   NUM_GPUS=0 MAX_BATCH_SIZE=4 WN_CHANNELS=64 STEPS=2 bash scripts/train_benchmark_waveglow.sh      a laptop
#   DRY_RUN=1 bash scripts/train_benchmark_waveglow.sh           prints the command instead of running it
# Arguments go to scripts/largest_batch.py. The data is made up: a segment of 8000 samples for each place in the batch.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"
use_python

if uses_gpu; then n_gpus=1; else n_gpus=0; fi
: "${NUM_GPUS:=$n_gpus}" # 0 measures the CPU, 1 the first GPU; others hold as much
: "${MODEL:=WaveGlow}" # or Tacotron2, FastPitch, HiFi-GAN
: "${WN_CHANNELS:=512}" # of WaveGlow
: "${BATCH_SIZE:=1}" # to begin with
: "${MAX_BATCH_SIZE:=}" # to stop at; empty: where memory ends, on the CPU 8
: "${PRECISIONS:=}" # of fp32, tf32, float16, bfloat16; empty: those that the machine has
: "${STEPS:=5}" # updates that are timed

need_whole_numbers NUM_GPUS BATCH_SIZE STEPS WN_CHANNELS
[ "$NUM_GPUS" -le 1 ] || wrong_option "NUM_GPUS=$NUM_GPUS: expected 0 or 1; the batch of one GPU is looked for"
require_gpus "$NUM_GPUS"
[ "$NUM_GPUS" -gt 0 ] || : "${MAX_BATCH_SIZE:=8}"

read -r -a precisions <<<"$PRECISIONS"
command=(
    "$PYTHON" -m scripts.largest_batch
    --model "$MODEL"
    --wn-channels "$WN_CHANNELS"
    --smallest "$BATCH_SIZE"
    --steps "$STEPS"
)
[ -z "$MAX_BATCH_SIZE" ] || command+=(--largest "$MAX_BATCH_SIZE")
[ "${#precisions[@]}" -eq 0 ] || command+=(--settings "${precisions[@]}")
[ "$NUM_GPUS" -eq 0 ] || command+=(--cuda)
command+=("$@")

exec_or_print "${command[@]}"
