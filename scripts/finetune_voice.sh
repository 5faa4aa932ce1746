#!/usr/bin/env bash
# Fine-tunes a FastPitch to a new voice, from recordings and transcripts alone; further arguments go to train.py.
#   bash scripts/finetune_voice.sh output/FastPitch_checkpoint_1000.pt my_voice
#   SPEAKER=anna EPOCHS=400 NUM_GPUS=0 BS=8 bash scripts/finetune_voice.sh fastpitch.pt my_voice --symbol-set ipa
#   DRY_RUN=1 bash scripts/finetune_voice.sh fastpitch.pt my_voice      prints the commands instead of running them
# The checkpoint is ours or a published one, of version 1.0 or 1.1; the dataset is a folder of LJSpeech's layout (wavs/
# and metadata.csv), or any folder with TRAIN_FILELIST and VAL_FILELIST, lists of wavs/a.wav|text[|speaker], named.
# Symbols and speakers keep what they have learnt by their names, new ones start from the mean of the others.
# Paths are relative to the project's folder. Stopped, it goes on where it was when it is started again.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"
if [ $# -lt 2 ]; then
    wrong_option "expected: bash scripts/finetune_voice.sh CHECKPOINT DATASET [options of train.py]"
fi
checkpoint=$1 dataset=${2%/}
shift 2
use_python

: "${SPEAKER:=$(basename "$dataset")}" # the new voice's name
: "${OUTPUT_DIR:=./output/$SPEAKER}"
: "${TRAIN_FILELIST:=}" # empty: made of metadata.csv
: "${VAL_FILELIST:=}"
: "${N_VAL:=5}"    # clips set aside for validation then
: "${NUM_GPUS:=1}" # 0 trains on the CPU
: "${BS:=16}"      # utterances in a micro-batch of one process
: "${GRAD_ACCUMULATION:=1}"
: "${AMP:=false}"
: "${EPOCHS:=200}"
: "${EPOCHS_PER_CHECKPOINT:=50}"
: "${VALIDATION_INTERVAL:=10}"
: "${LEARNING_RATE:=0.05}" # of a new schedule, with a warm-up of its own
: "${WARMUP_STEPS:=50}"
: "${EMA:=0.98}" # decay of the averaged weights, which inference.py --ema speaks with; 0: none are kept
: "${KL_LOSS_START_EPOCH:=20}"
: "${KL_LOSS_WARMUP_EPOCHS:=20}"
: "${UNKNOWN_SYMBOLS:=drop}" # error: refuse transcripts with signs that the voice has no symbol for
: "${SEED:=1234}"
: "${NNODES:=1}"

[ -f "$checkpoint" ] || [ "${DRY_RUN:-0}" = 1 ] || die "$checkpoint: no such checkpoint"
[ -d "$dataset" ] || [ "${DRY_RUN:-0}" = 1 ] || die "$dataset: no such folder"
need_whole_numbers NUM_GPUS BS GRAD_ACCUMULATION N_VAL
set_launcher finetune_voice
require_gpus "$NUM_GPUS"

if [ -z "$TRAIN_FILELIST" ]; then
    [ -z "$VAL_FILELIST" ] || wrong_option "VAL_FILELIST needs TRAIN_FILELIST too"
    [ -f "$dataset/metadata.csv" ] || [ "${DRY_RUN:-0}" = 1 ] ||
        die "$dataset/metadata.csv: no such file; it lists clip|transcript, or set TRAIN_FILELIST and VAL_FILELIST"
    lists=$OUTPUT_DIR/filelists
    TRAIN_FILELIST=$lists/${SPEAKER}_audio_text_train_filelist.txt
    VAL_FILELIST=$lists/${SPEAKER}_audio_text_val_filelist.txt
    if ! [ -f "$TRAIN_FILELIST" ]; then
        run_or_print "$PYTHON" -m scripts.make_filelists --dataset-path "$dataset" --output "$lists" \
            --name "$SPEAKER" --n-val "$N_VAL" --n-test 0 --speaker "$SPEAKER"
    fi
fi
command=(
    "${launcher[@]}"
    train.py
    --model FastPitch
    --output "$OUTPUT_DIR"
    --dataset-path "$dataset"
    --training-files "$TRAIN_FILELIST"
    --validation-files "${VAL_FILELIST:-$TRAIN_FILELIST}"
    --from-checkpoint "$checkpoint"
    --resume
    --learned-alignment
    --unknown-symbols "$UNKNOWN_SYMBOLS"
    --kl-loss-start-epoch "$KL_LOSS_START_EPOCH"
    --kl-loss-warmup-epochs "$KL_LOSS_WARMUP_EPOCHS"
    --epochs "$EPOCHS"
    --epochs-per-checkpoint "$EPOCHS_PER_CHECKPOINT"
    --validation-interval "$VALIDATION_INTERVAL"
    --warmup-steps "$WARMUP_STEPS"
    --learning-rate "$LEARNING_RATE"
    --ema-decay "$EMA"
    --batch-size "$BS"
    --gradient-accumulation-steps "$GRAD_ACCUMULATION"
    --seed "$SEED"
)
[ "$NUM_GPUS" -eq 0 ] || command+=(--cuda)
[ "$AMP" != true ] || command+=(--amp)
command+=("$@")

exec_or_print "${command[@]}"
