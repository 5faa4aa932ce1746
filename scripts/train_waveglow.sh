#!/usr/bin/env bash
# Trains WaveGlow as published; everything can be set through environment variables, arguments go to train.py.
#   NUM_GPUS=8 AMP=true bash scripts/train_waveglow.sh
#   NUM_GPUS=1 BS=10 AMP=true bash scripts/train_waveglow.sh --wn-channels 256 --resume
#   NUM_GPUS=0 BS=2 bash scripts/train_waveglow.sh --wn-channels 64 --flows 6      on the CPU
#   DRY_RUN=1 bash scripts/train_waveglow.sh           prints the command instead of running it
# Paths are relative to the project's folder. For several machines, run it on each with NNODES and MASTER_ADDR
# (host of the first) set, and NODE_RANK if the machines cannot agree on who is first by themselves.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"
use_python

: "${NUM_GPUS:=8}" # on each machine; 0 trains on the CPU
: "${AMP:=false}"
: "${BS:=$([ "$AMP" = true ] && echo 10 || echo 4)}" # what 16 GB hold
: "${BATCH_SIZE:=$BS}"      # segments in a micro-batch of one process
: "${GRAD_ACCUMULATION:=1}" # micro-batches in an update
: "${OUTPUT_DIR:=./output}"
: "${EPOCHS:=1501}"
: "${EPOCHS_PER_CHECKPOINT:=50}"
: "${LEARNING_RATE:=1e-4}"
: "${WEIGHT_DECAY:=0}"
: "${GRAD_CLIP:=$([ "$AMP" = true ] && echo 65504 || echo none)}" # largest norm of the gradient
: "${SEGMENT_LENGTH:=8000}"                                       # samples
: "${SEED:=1234}"
: "${DATASET_PATH:=LJSpeech-1.1}"
: "${TRAIN_FILELIST:=filelists/ljs_audio_train_v3.txt}"
: "${VAL_FILELIST:=filelists/ljs_audio_val.txt}"
: "${NNODES:=1}" # machines

need_whole_numbers NUM_GPUS BATCH_SIZE GRAD_ACCUMULATION NNODES
set_launcher waveglow
require_gpus "$NUM_GPUS"
note_global_batch "$BATCH_SIZE" 4 80

command=(
    "${launcher[@]}"
    train.py
    --model WaveGlow
    --output "$OUTPUT_DIR"
    --dataset-path "$DATASET_PATH"
    --training-files "$TRAIN_FILELIST"
    --validation-files "$VAL_FILELIST"
    --epochs "$EPOCHS"
    --epochs-per-checkpoint "$EPOCHS_PER_CHECKPOINT"
    --learning-rate "$LEARNING_RATE"
    --weight-decay "$WEIGHT_DECAY"
    --segment-length "$SEGMENT_LENGTH"
    --batch-size "$BATCH_SIZE"
    --gradient-accumulation-steps "$GRAD_ACCUMULATION"
    --seed "$SEED"
)
[ "$GRAD_CLIP" = none ] || command+=(--grad-clip-thresh "$GRAD_CLIP")
[ "$NUM_GPUS" -eq 0 ] || command+=(--cuda --cudnn-benchmark) # all segments have one shape
[ "$AMP" != true ] || command+=(--amp)
command+=("$@")

exec_or_print "${command[@]}"
