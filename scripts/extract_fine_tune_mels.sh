#!/usr/bin/env bash
# Makes a generator's mels of a corpus, to fine-tune HiFi-GAN on; arguments go to extract_mels.py.
#   bash scripts/extract_fine_tune_mels.sh  # with the newest FastPitch in ./output, else in ./pretrained_models
#   FASTPITCH=voice.pt DATASET_PATH=my_voice NAME=my_voice bash scripts/extract_fine_tune_mels.sh
# The lists are those of scripts/prepare_dataset.sh that FastPitch is trained with: recordings and texts for a learned
# alignment, which finds the durations, else features. TRAIN_FILELIST and VAL_FILELIST name others. Started again, it
# keeps what an earlier run has made. Next: scripts/fine_tune.sh.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
use_python
source scripts/lib/originals.sh
take_published extract_fine_tune_mels "$@"
set -- "${arguments[@]}"

: "${FASTPITCH:=}" # checkpoint; empty: the newest
: "${DATASET_PATH:=LJSpeech-1.1}" # folder of the corpus
: "${NAME:=ljs}" # first part of the lists' names
: "${FILELISTS:=filelists}" # folder of the lists
: "${TRAIN_FILELIST:=}" # list to train on, instead of the one of that name
: "${VAL_FILELIST:=}" # list to validate on, with TRAIN_FILELIST
: "${OUTPUT_DIR:=data/mels-$NAME}" # folder for the results
: "${BATCH_SIZE:=32}" # batch size
: "${AMP:=false}" # `true`: mixed precision
: "${EMA:=}" # `true`: use the EMA weights; `false`: the raw ones; empty: EMA weights where there are any
: "${NUM_GPUS:=auto}" # `auto`: the GPU if there is one; 0: the CPU
find_ljspeech

need_names NAME
need_switches AMP EMA
[ -z "$VAL_FILELIST" ] || [ -n "$TRAIN_FILELIST" ] || wrong_option "VAL_FILELIST=$VAL_FILELIST: set TRAIN_FILELIST as well"
find_newest FASTPITCH FastPitch scripts/train.sh
command=("$PYTHON" extract_mels.py --checkpoint "$FASTPITCH" --dataset-path "$DATASET_PATH")
if [ -n "$TRAIN_FILELIST" ]; then
    command+=(--filelist "$TRAIN_FILELIST")
    [ -z "$VAL_FILELIST" ] || command+=("$VAL_FILELIST")
else
    command+=(--lists "$FILELISTS/$NAME")
fi
command+=(--output "$OUTPUT_DIR" --batch-size "$BATCH_SIZE" --resume)
add_flags command
exec_or_print "${command[@]}" "$@"
