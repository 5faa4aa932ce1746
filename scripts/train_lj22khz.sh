#!/usr/bin/env bash
# Trains HiFi-GAN as published; everything can be set through environment variables, arguments go to train.py.
#   NUM_GPUS=8 BATCH_SIZE=16 GRAD_ACCUMULATION=1 bash scripts/train_lj22khz.sh
#   AMP=true NUM_GPUS=1 BATCH_SIZE=16 GRAD_ACCUMULATION=8 bash scripts/train_lj22khz.sh --no_amp_grouped_conv --resume
#   NUM_GPUS=0 BATCH_SIZE=4 EPOCHS=20 bash scripts/train_lj22khz.sh --preset v3     on the CPU
#   DRY_RUN=1 bash scripts/train_lj22khz.sh                  prints the command instead of running it
# Paths are relative to the project's folder. For several machines, run it on each with NNODES and MASTER_ADDR
# (host of the first) set, and NODE_RANK if the machines cannot agree on who is first by themselves.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"
use_python

: "${NUM_GPUS:=8}" # on each machine; 0 trains on the CPU
: "${BS:=16}"
: "${BATCH_SIZE:=$BS}"      # segments in a micro-batch of one process
: "${GRAD_ACCUMULATION:=1}" # micro-batches in an update
: "${AMP:=false}"
: "${OUTPUT_DIR:=./output}"
: "${EPOCHS:=6500}"
: "${CHECKPOINT_INTERVAL:=10}" # epochs
: "${VALIDATION_INTERVAL:=10}"
: "${SAMPLES_INTERVAL:=100}"
: "${LEARNING_RATE:=3e-4}"
: "${LR_DECAY:=0.9998}" # of each epoch
: "${SEED:=1234}"
: "${DATASET_PATH:=LJSpeech-1.1}"
: "${TRAIN_FILELIST:=filelists/ljs_audio_train_v3.txt}"
: "${VAL_FILELIST:=filelists/ljs_audio_val.txt}"
: "${NNODES:=1}" # machines

need_whole_numbers NUM_GPUS BATCH_SIZE GRAD_ACCUMULATION NNODES
set_launcher hifigan
require_gpus "$NUM_GPUS"
note_global_batch "$BATCH_SIZE" 128

command=(
    "${launcher[@]}"
    train.py
    --model HiFi-GAN
    --output "$OUTPUT_DIR"
    --dataset-path "$DATASET_PATH"
    --training-files "$TRAIN_FILELIST"
    --validation-files "$VAL_FILELIST"
    --epochs "$EPOCHS"
    --checkpoint-interval "$CHECKPOINT_INTERVAL"
    --validation-interval "$VALIDATION_INTERVAL"
    --samples-interval "$SAMPLES_INTERVAL"
    --learning-rate "$LEARNING_RATE"
    --lr-decay "$LR_DECAY"
    --batch-size "$BATCH_SIZE"
    --grad-accumulation "$GRAD_ACCUMULATION"
    --seed "$SEED"
)
[ "$NUM_GPUS" -eq 0 ] || command+=(--cuda)
[ "$AMP" != true ] || command+=(--amp)
command+=("$@")

exec_or_print "${command[@]}"
