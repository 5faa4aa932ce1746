#!/usr/bin/env bash
# Trains Tacotron 2 as published; everything can be set through environment variables, arguments go to train.py.
#   NUM_GPUS=8 AMP=true bash scripts/train_tacotron2.sh
#   NUM_GPUS=1 BS=128 bash scripts/train_tacotron2.sh --resume
#   NUM_GPUS=0 BS=8 LOAD_MEL_FROM_DISK=false bash scripts/train_tacotron2.sh        on the CPU, mels made in training
#   DRY_RUN=1 bash scripts/train_tacotron2.sh          prints the command instead of running it
# The lists' mels are made by FEATURES=mels bash scripts/prepare_dataset.sh.
# Paths are relative to the project's folder. For several machines, run it on each with NNODES and MASTER_ADDR
# (host of the first) set, and NODE_RANK if the machines cannot agree on who is first by themselves.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"
use_python

: "${NUM_GPUS:=8}" # on each machine; 0 trains on the CPU
: "${AMP:=false}"
: "${BS:=$([ "$AMP" = true ] && echo 104 || echo 48)}" # what 16 GB hold
: "${BATCH_SIZE:=$BS}"      # utterances in a micro-batch of one process
: "${GRAD_ACCUMULATION:=1}" # micro-batches in an update
: "${OUTPUT_DIR:=./output}"
: "${EPOCHS:=1501}"
: "${EPOCHS_PER_CHECKPOINT:=50}"
: "${LEARNING_RATE:=1e-3}"
: "${ANNEAL_STEPS:=500 1000 1500}" # epochs after which the rate falls; none: never
: "${ANNEAL_FACTOR:=$([ "$AMP" = true ] && echo 0.3 || echo 0.1)}"
: "${WEIGHT_DECAY:=1e-6}"
: "${GRAD_CLIP:=1.0}"
: "${SEED:=1234}"
: "${DATASET_PATH:=LJSpeech-1.1}"
: "${LOAD_MEL_FROM_DISK:=true}" # false: the lists hold recordings
kind=$([ "$LOAD_MEL_FROM_DISK" = true ] && echo mel || echo audio)
: "${TRAIN_FILELIST:=filelists/ljs_${kind}_text_train_filelist.txt}"
: "${VAL_FILELIST:=filelists/ljs_${kind}_text_val_filelist.txt}"
: "${INPUT_TYPE:=char}" # or phone
: "${SYMBOL_SET:=$([ "$INPUT_TYPE" = phone ] && echo arpabet || echo english_basic)}"
: "${TEXT_CLEANERS:=english_cleaners_v3}" # several are separated by blanks; published voices: english_cleaners
: "${UNKNOWN_SYMBOLS:=error}" # drop: as published, which LJSpeech's double quotes need with english_cleaners
: "${NNODES:=1}" # machines

need_whole_numbers NUM_GPUS BATCH_SIZE GRAD_ACCUMULATION NNODES
set_launcher tacotron2
require_gpus "$NUM_GPUS"
note_global_batch "$BATCH_SIZE" 48 1024

[ "$ANNEAL_STEPS" != none ] || ANNEAL_STEPS=""
read -r -a anneal_steps <<<"$ANNEAL_STEPS"
read -r -a cleaners <<<"$TEXT_CLEANERS"
command=(
    "${launcher[@]}"
    train.py
    --model Tacotron2
    --output "$OUTPUT_DIR"
    --dataset-path "$DATASET_PATH"
    --training-files "$TRAIN_FILELIST"
    --validation-files "$VAL_FILELIST"
    --input-type "$INPUT_TYPE"
    --symbol-set "$SYMBOL_SET"
    --text-cleaners "${cleaners[@]}"
    --unknown-symbols "$UNKNOWN_SYMBOLS"
    --epochs "$EPOCHS"
    --epochs-per-checkpoint "$EPOCHS_PER_CHECKPOINT"
    --learning-rate "$LEARNING_RATE"
    --anneal-steps "${anneal_steps[@]}"
    --anneal-factor "$ANNEAL_FACTOR"
    --weight-decay "$WEIGHT_DECAY"
    --grad-clip-thresh "$GRAD_CLIP"
    --batch-size "$BATCH_SIZE"
    --gradient-accumulation-steps "$GRAD_ACCUMULATION"
    --seed "$SEED"
)
[ "$LOAD_MEL_FROM_DISK" != true ] || command+=(--load-mel-from-disk)
[ "$NUM_GPUS" -eq 0 ] || command+=(--cuda)
[ "$AMP" != true ] || command+=(--amp)
command+=("$@")

exec_or_print "${command[@]}"
