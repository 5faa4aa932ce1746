#!/usr/bin/env bash
# Times training of HiFi-GAN by train.py itself, and prints one table of frames/s; arguments go to train.py.
#   NUM_GPUS="1 8" AMP="false true" bash scripts/train_benchmark.sh
#   NUM_GPUS=0 BS=4 GRAD_ACCUMULATION=1 EPOCHS=2 CLIPS=40 bash scripts/train_benchmark.sh --preset v3     a laptop
#   DRY_RUN=1 bash scripts/train_benchmark.sh        prints the commands instead of running them
# NUM_GPUS, AMP and BS may be several, parted by blanks: each combination is a run. Without a corpus (DATASET_PATH, by
# default LJSpeech-1.1) the embedded speaker makes a small one; its epochs are short, so read its figures with care.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"
use_python

if uses_gpu; then n_gpus=$(nvidia-smi -L | wc -l); else n_gpus=0; fi
: "${NUM_GPUS:=$n_gpus}" # 0 measures the CPU
: "${AMP:=false true}"
: "${BS:=16}"
: "${GRAD_ACCUMULATION:=}" # empty: what makes the published global batch of 128
: "${EPOCHS:=10}"
: "${CLIPS:=160}" # sentences of the corpus that is made where there is none
: "${DATASET_PATH:=LJSpeech-1.1}"
: "${TRAIN_FILELIST:=filelists/ljs_audio_train_v3.txt}"
: "${VAL_FILELIST:=filelists/ljs_audio_val.txt}"
: "${OUTPUT_DIR:=output/train_benchmark}"

if [ ! -d "$DATASET_PATH" ]; then
    [ "$DATASET_PATH" = LJSpeech-1.1 ] || die "$DATASET_PATH: no such folder; set DATASET_PATH to a corpus"
    DATASET_PATH="$OUTPUT_DIR/corpus"
    TRAIN_FILELIST="$DATASET_PATH/train.txt" VAL_FILELIST="$DATASET_PATH/val.txt"
    if [ "${DRY_RUN:-0}" != 1 ]; then
        echo "LJSpeech-1.1 is not here: the embedded speaker makes a corpus of up to $CLIPS clips" >&2
        mkdir -p "$OUTPUT_DIR"
        { grep -v -e '^#' -e '^ *$' scripts/corpus_sentences.txt || true; } | sed -n "1,${CLIPS}p" \
            >"$OUTPUT_DIR/sentences.txt"
    fi
    run_or_print "$PYTHON" -m scripts.make_corpus -o "$DATASET_PATH" --sentences "$OUTPUT_DIR/sentences.txt" \
        --n-validation 2
fi
export EPOCHS DATASET_PATH TRAIN_FILELIST VAL_FILELIST
# Nothing but training takes time.
export CHECKPOINT_INTERVAL=$((EPOCHS + 1)) VALIDATION_INTERVAL=$((EPOCHS + 1)) SAMPLES_INTERVAL=$((EPOCHS + 1))

runs=()
for gpus in $NUM_GPUS; do
    processes=$((gpus > 0 ? gpus : 1))
    for batch_size in $BS; do
        accumulation=${GRAD_ACCUMULATION:-$((128 / (batch_size * processes)))}
        [ "$accumulation" -gt 0 ] || accumulation=1
        for amp in $AMP; do
            folder="$OUTPUT_DIR/gpus${gpus}_bs${batch_size}_acc${accumulation}_amp_$amp"
            [ "${DRY_RUN:-0}" = 1 ] || rm -rf "$folder" # figures of an earlier run
            NUM_GPUS=$gpus BATCH_SIZE=$batch_size GRAD_ACCUMULATION=$accumulation AMP=$amp OUTPUT_DIR=$folder \
                bash scripts/train_lj22khz.sh "$@"
            runs+=("$processes=$folder/nvlog.json")
        done
    done
done
run_or_print "$PYTHON" -m scripts.train_table "${runs[@]}"
