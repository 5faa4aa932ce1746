#!/usr/bin/env bash
# Makes a generator's mels of a corpus, to fine-tune HiFi-GAN on; arguments go to extract_mels.py.
#   bash scripts/extract_fine_tune_mels.sh          with the newest FastPitch in ./output, else in ./pretrained_models
#   FASTPITCH=voice.pt DATASET_PATH=my_voice OUTPUT_DIR=data/mels-my-voice \
#       TRAIN_FILELIST=filelists/my_voice_mel_dur_pitch_text_train_filelist.txt \
#       VAL_FILELIST=filelists/my_voice_mel_dur_pitch_text_val_filelist.txt bash scripts/extract_fine_tune_mels.sh
#   DRY_RUN=1 bash scripts/extract_fine_tune_mels.sh    prints the command instead of running it
# The lists are those that FastPitch was trained with: durations and pitch come from there. Started again, it keeps what
# an earlier run has made. Next: scripts/fine_tune.sh.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
use_python

: "${FASTPITCH:=}" # checkpoint; empty: the newest
: "${DATASET_PATH:=LJSpeech-1.1}" # folder of the corpus
: "${TRAIN_FILELIST:=filelists/ljs_mel_dur_pitch_text_train_filelist.txt}" # list to train on
: "${VAL_FILELIST:=filelists/ljs_mel_dur_pitch_text_val_filelist.txt}" # list to validate on
: "${OUTPUT_DIR:=data/mels-fastpitch-ljs22khz}" # folder for the results
: "${BATCH_SIZE:=32}" # batch size
: "${AMP:=false}" # `true`: mixed precision
: "${EMA:=}" # `true`: use the EMA weights; `false`: the raw ones; empty: EMA weights where there are any
: "${CPU:=false}" # true: on the CPU, even where there is a GPU

find_newest FASTPITCH FastPitch scripts/train.sh
command=("$PYTHON" extract_mels.py --checkpoint "$FASTPITCH" --dataset-path "$DATASET_PATH")
command+=(--filelist "$TRAIN_FILELIST" "$VAL_FILELIST" --output "$OUTPUT_DIR" --batch-size "$BATCH_SIZE" --resume)
add_flags command
exec_or_print "${command[@]}" "$@"
