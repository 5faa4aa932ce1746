#!/usr/bin/env bash
# Fine-tunes a FastPitch to a new voice, from recordings and transcripts alone; further arguments go to train.py.
#   bash scripts/finetune_voice.sh output/FastPitch_checkpoint_1000.pt my_voice
#   SPEAKER=anna EPOCHS=400 NUM_GPUS=0 BS=8 bash scripts/finetune_voice.sh fastpitch.pt my_voice --symbol-set english_expanded
# The checkpoint is ours, its safetensors, or a published FastPitch 1.0 or 1.1; the dataset is a folder of LJSpeech's
# layout (wavs/ and metadata.csv), or a folder with TRAIN_FILELIST and VAL_FILELIST, lists of wavs/a.wav|text[|speaker].
# Symbols and speakers keep their embeddings by name; those of new ones start as the mean of the others.
# Transcripts are text, which the voice reads as it always does: one of phones makes phones of them. Lists of phones need
# --transcript-type phones. Symbols that it lacks are dropped and counted.
# Paths are relative to the project's folder. Run again after a stop, it resumes. Other variables of scripts/train.sh apply.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
if [ $# -lt 2 ]; then
    wrong_option "expected: bash scripts/finetune_voice.sh CHECKPOINT DATASET [options of train.py]"
fi
checkpoint=$1 dataset=${2%/}
shift 2
use_python

: "${SPEAKER:=$(basename -- "$dataset")}" # the new voice's name; by default that of the folder
: "${TRAIN_FILELIST:=}" # empty: made of metadata.csv
: "${VAL_FILELIST:=}" # list to validate on
: "${N_VAL:=5}" # clips set aside for validation then
: "${KL_LOSS_START_EPOCH:=20}" # epoch after which the binarization loss begins
: "${KL_LOSS_WARMUP_EPOCHS:=20}" # epochs in which its weight rises
: "${OUTPUT_DIR:=./output/$SPEAKER}" # folder for the results
: "${NUM_GPUS:=auto}" # `auto`: one GPU if there is one; 0: the CPU

[ -f "$checkpoint" ] || [ "${DRY_RUN:-0}" = 1 ] || die "$checkpoint: no such checkpoint"
[ -d "$dataset" ] || [ "${DRY_RUN:-0}" = 1 ] || die "$dataset: no such folder"
need_whole_numbers 1 99999 BS GRAD_ACCUMULATION
need_whole_numbers 0 999999 N_VAL
need_names SPEAKER

if [ -z "$TRAIN_FILELIST" ]; then
    [ -z "$VAL_FILELIST" ] || wrong_option "VAL_FILELIST needs TRAIN_FILELIST too"
    [ -f "$dataset/metadata.csv" ] || [ "${DRY_RUN:-0}" = 1 ] ||
        die "$dataset/metadata.csv: no such file; it lists clip|transcript, or set TRAIN_FILELIST and VAL_FILELIST"
    lists=$OUTPUT_DIR/filelists
    TRAIN_FILELIST=$lists/${SPEAKER}_audio_text_train_filelist.txt
    VAL_FILELIST=$lists/${SPEAKER}_audio_text_val_filelist.txt
    if ! [ -f "$TRAIN_FILELIST" ]; then
        run_or_print "$PYTHON" -m scripts.datasets.make_filelists --dataset-path "$dataset" --output "$lists" \
            --name "$SPEAKER" --n-val "$N_VAL" --n-test 0 --speaker "$SPEAKER"
    fi
fi

MODEL=FastPitch BS=${BS:-16} resolve_training_gpus 1
export NUM_GPUS OUTPUT_DIR TRAIN_FILELIST VAL_FILELIST=${VAL_FILELIST:-$TRAIN_FILELIST} DATASET_PATH=$dataset
# A new schedule with a warm-up of its own; inference uses the EMA weights. UNKNOWN_SYMBOLS=error refuses
# transcripts with characters that the voice has no symbol for.
MODEL=FastPitch LEARNED_ALIGNMENT=true exec bash scripts/train.sh NUM_SPEAKERS=auto BS=16 EPOCHS=200 \
    EPOCHS_PER_CHECKPOINT=50 VALIDATION_INTERVAL=10 LEARNING_RATE=0.05 WARMUP_STEPS=50 EMA=0.98 \
    --from-checkpoint "$checkpoint" --resume --kl-loss-start-epoch "$KL_LOSS_START_EPOCH" \
    --kl-loss-warmup-epochs "$KL_LOSS_WARMUP_EPOCHS" "$@"
