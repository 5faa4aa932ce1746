#!/usr/bin/env bash
# Trains FastPitch as published; everything can be set through environment variables, arguments go to train.py.
#   NUM_GPUS=1 BS=64 GRAD_ACCUMULATION=4 AMP=true bash scripts/train.sh --resume
#   NUM_GPUS=0 BS=16 bash scripts/train.sh      on the CPU
#   LEARNED_ALIGNMENT=true ENERGY=true bash scripts/train.sh        FastPitch 1.1, from recordings and transcripts alone
#   DRY_RUN=1 bash scripts/train.sh             prints the command instead of running it
# Paths are relative to the project's folder. For several machines, run it on each with NNODES and MASTER_ADDR
# (host of the first) set, and NODE_RANK if the machines cannot agree on who is first by themselves.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"
use_python

: "${NUM_GPUS:=8}"          # on each machine; 0 trains on the CPU
: "${BS:=32}"               # utterances in a micro-batch of one process
: "${GRAD_ACCUMULATION:=1}" # micro-batches in an update
: "${AMP:=false}"
: "${OUTPUT_DIR:=./output}"
: "${EPOCHS:=1500}"
: "${EPOCHS_PER_CHECKPOINT:=50}"
: "${LEARNING_RATE:=0.1}"
: "${WARMUP_STEPS:=1000}"
: "${SEED:=1234}"
: "${DATASET_PATH:=LJSpeech-1.1}"
: "${LEARNED_ALIGNMENT:=false}" # true: the lists hold recordings (or mels and pitch of frames) and no durations
: "${ENERGY:=false}"
: "${PITCH_METHOD:=praat}" # or pyin
kind=$([ "$LEARNED_ALIGNMENT" = true ] && echo audio || echo mel_dur_pitch)
: "${TRAIN_FILELIST:=filelists/ljs_${kind}_text_train_filelist.txt}"
: "${VAL_FILELIST:=filelists/ljs_${kind}_text_val_filelist.txt}"
: "${INPUT_TYPE:=char}" # or phone
: "${SYMBOL_SET:=$([ "$INPUT_TYPE" = phone ] && echo arpabet || echo english_basic)}"
: "${TEXT_CLEANERS:=english_cleaners_v3}" # several are separated by blanks; published voices: english_cleaners
: "${UNKNOWN_SYMBOLS:=error}" # drop: as published, which LJSpeech's double quotes need with english_cleaners
: "${NUM_SPEAKERS:=1}" # auto: as many as the training list names
: "${NNODES:=1}" # machines

# scripts/prepare_dataset.sh makes the statistics from the list of recordings that the training list comes from.
stem=$(basename "$TRAIN_FILELIST" .txt)
: "${PITCH_MEAN_STD:=$([ "$LEARNED_ALIGNMENT" = true ] || echo "$DATASET_PATH/pitch_char_stats__${stem/mel_dur_pitch_text/audio_text}.json")}"

need_whole_numbers NUM_GPUS BS GRAD_ACCUMULATION NNODES
set_launcher fastpitch
require_gpus "$NUM_GPUS"
note_global_batch "$BS" 256

read -r -a cleaners <<<"$TEXT_CLEANERS"
command=(
    "${launcher[@]}"
    train.py
    --model FastPitch
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
    --warmup-steps "$WARMUP_STEPS"
    --learning-rate "$LEARNING_RATE"
    --batch-size "$BS"
    --gradient-accumulation-steps "$GRAD_ACCUMULATION"
    --seed "$SEED"
)
[ -z "$PITCH_MEAN_STD" ] || command+=(--pitch-mean-std-file "$PITCH_MEAN_STD")
[ "$NUM_SPEAKERS" = auto ] || command+=(--n-speakers "$NUM_SPEAKERS")
[ "$LEARNED_ALIGNMENT" != true ] || command+=(--learned-alignment)
[ "$PITCH_METHOD" = praat ] || command+=(--pitch-method "$PITCH_METHOD")
[ "$ENERGY" != true ] || command+=(--energy-conditioning)
[ "$NUM_GPUS" -eq 0 ] || command+=(--cuda)
[ "$AMP" != true ] || command+=(--amp)
command+=("$@")

exec_or_print "${command[@]}"
