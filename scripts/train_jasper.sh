#!/usr/bin/env bash
# Trains Jasper as published; everything can be set through environment variables, arguments go to train.py.
#   NUM_GPUS=8 AMP=true bash scripts/train_jasper.sh
#   NUM_GPUS=1 BS=32 GRAD_ACCUMULATION=16 AMP=true bash scripts/train_jasper.sh --resume
#   MODEL_CONFIG=jasper/configs/jasper10x5dr_speedp-offline_speca.yaml bash scripts/train_jasper.sh
#   DRY_RUN=1 bash scripts/train_jasper.sh             prints the command instead of running it
# Paths are relative to the project's folder, manifests and lists to DATASET_PATH. For several machines, run it on each
# with NNODES and MASTER_ADDR (host of the first) set, and NODE_RANK if they cannot agree on who is first by themselves.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"
use_python

: "${NUM_GPUS:=8}" # on each machine; 0 trains on the CPU
: "${AMP:=false}"
: "${BS:=32}"
: "${BATCH_SIZE:=$BS}"      # utterances in a micro-batch of one process
: "${GRAD_ACCUMULATION:=2}" # micro-batches in an update
: "${OUTPUT_DIR:=./output}"
: "${MODEL_CONFIG:=jasper/configs/jasper10x5dr_speedp-online_speca.yaml}"
: "${EPOCHS:=440}"
: "${EPOCHS_PER_CHECKPOINT:=10}"
: "${KEEP_MILESTONES=100 200 300 400}" # epochs whose checkpoints stay, with the last two; empty: all stay
: "${LEARNING_RATE:=0.01}"
: "${MIN_LEARNING_RATE:=1e-5}"
: "${LR_POLICY:=exponential}" # or polynomial, legacy
: "${LR_EXP_GAMMA:=0.981}"
: "${WARMUP_EPOCHS:=2}"
: "${HOLD_EPOCHS:=140}"
: "${WEIGHT_DECAY:=1e-3}"
: "${EMA:=0.999}" # decay of the averaged weights; 0: none kept
: "${SEED:=0}"
: "${DATASET_PATH:=LibriSpeech}"
: "${TRAIN_MANIFESTS:=$(printf "$DATASET_PATH/librispeech-%s-wav.json " train-clean-100 train-clean-360 train-other-500)}"
: "${VAL_MANIFEST:=$DATASET_PATH/librispeech-dev-clean-wav.json}"
: "${NNODES:=1}" # machines

need_whole_numbers NUM_GPUS BATCH_SIZE GRAD_ACCUMULATION NNODES
set_launcher jasper
require_gpus "$NUM_GPUS"
note_global_batch "$BATCH_SIZE" 512

read -r -a manifests <<<"$TRAIN_MANIFESTS"
read -r -a milestones <<<"$KEEP_MILESTONES"
command=(
    "${launcher[@]}"
    train.py
    --model Jasper
    --output "$OUTPUT_DIR"
    --dataset-path "$DATASET_PATH"
    --training-files "${manifests[0]}"
    --validation-files "$VAL_MANIFEST"
    --model-config "$MODEL_CONFIG"
    --epochs "$EPOCHS"
    --epochs-per-checkpoint "$EPOCHS_PER_CHECKPOINT"
    --learning-rate "$LEARNING_RATE"
    --min-lr "$MIN_LEARNING_RATE"
    --lr-policy "$LR_POLICY"
    --lr-exp-gamma "$LR_EXP_GAMMA"
    --warmup-epochs "$WARMUP_EPOCHS"
    --hold-epochs "$HOLD_EPOCHS"
    --weight-decay "$WEIGHT_DECAY"
    --ema-decay "$EMA"
    --batch-size "$BATCH_SIZE"
    --gradient-accumulation-steps "$GRAD_ACCUMULATION"
    --seed "$SEED"
)
[ "${#manifests[@]}" -le 1 ] || command+=(--more-training-files "${manifests[@]:1}")
[ "${#milestones[@]}" -eq 0 ] || command+=(--keep-milestones "${milestones[@]}")
[ "$NUM_GPUS" -eq 0 ] || command+=(--cuda)
[ "$AMP" != true ] || command+=(--amp)
command+=("$@")

exec_or_print "${command[@]}"
