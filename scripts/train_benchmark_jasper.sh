#!/usr/bin/env bash
# Times training of Jasper by train.py itself, and prints one table of sequences/s in the steady state, the speed-up of
# mixed precision and the weak scaling over GPUs; arguments go to train.py.
#   BATCH_SIZE_SEQ="32 64" NUM_GPUS_SEQ="1 4 8" bash scripts/train_benchmark_jasper.sh
#   NUM_GPUS_SEQ=0 BATCH_SIZE_SEQ=4 SEQUENCES=32 MODEL_CONFIG=jasper/configs/jasper_digits.yaml \
#       bash scripts/train_benchmark_jasper.sh                   a laptop
#   DRY_RUN=1 bash scripts/train_benchmark_jasper.sh             prints the commands instead of running them
# Each batch size, number of GPUs and precision is a run. Without LibriSpeech (DATASET_PATH) noise is trained on.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"
use_python

: "${BATCH_SIZE_SEQ:=32}"  # of one GPU
: "${NUM_GPUS_SEQ:=1 4 8}" # 0 measures the CPU
: "${AMP:=false true}"
: "${EPOCHS:=2}"
: "${MODEL_CONFIG:=jasper/configs/jasper10x5dr_speedp-online_train-benchmark.yaml}"
: "${DATASET_PATH:=LibriSpeech}"
: "${TRAIN_MANIFEST:=$DATASET_PATH/librispeech-train-clean-100-wav.json}"
: "${VAL_MANIFEST:=$DATASET_PATH/librispeech-dev-clean-wav.json}"
: "${MAX_DURATION:=}" # s; empty: as MODEL_CONFIG says
: "${SEQUENCES:=}" # recordings of noise, where there is no corpus; empty: 24 updates of the largest run
: "${OUTPUT_DIR:=output/train_benchmark_jasper}"

for value in $BATCH_SIZE_SEQ $NUM_GPUS_SEQ $EPOCHS $SEQUENCES; do
    [[ "$value" =~ ^[0-9]+$ ]] || wrong_option "$value: expected whole numbers in BATCH_SIZE_SEQ, NUM_GPUS_SEQ, EPOCHS, SEQUENCES"
done
if [ ! -e "$TRAIN_MANIFEST" ]; then
    [ "$DATASET_PATH" = LibriSpeech ] || die "$TRAIN_MANIFEST: no such manifest; see scripts/preprocess_librispeech.sh"
    largest=$(tr ' ' '\n' <<<"$BATCH_SIZE_SEQ" | sort -n | tail -n 1)
    most=$(tr ' ' '\n' <<<"$NUM_GPUS_SEQ" | sort -n | tail -n 1)
    : "${SEQUENCES:=$((24 * largest * (most > 0 ? most : 1)))}"
    DATASET_PATH="$OUTPUT_DIR/noise" TRAIN_MANIFEST="$OUTPUT_DIR/noise/random.json" VAL_MANIFEST="$OUTPUT_DIR/noise/random.json"
    echo "LibriSpeech is not here: $SEQUENCES recordings of noise are made to train on" >&2
    making=("$PYTHON" -m scripts.random_recogniser "$DATASET_PATH" --no-checkpoint --count "$SEQUENCES")
    [ -z "$MAX_DURATION" ] || making+=(--max-duration "$MAX_DURATION")
    run_or_print "${making[@]}" --model-config "$MODEL_CONFIG"
fi
export EPOCHS MODEL_CONFIG DATASET_PATH VAL_MANIFEST TRAIN_MANIFESTS="$TRAIN_MANIFEST"
# Nothing but training takes time.
export EPOCHS_PER_CHECKPOINT=$((EPOCHS + 1)) KEEP_MILESTONES="" EMA=0 GRAD_ACCUMULATION=1
options=(--validation-interval "$((EPOCHS + 1))" --samples-interval "$((EPOCHS + 1))")
[ -z "$MAX_DURATION" ] || options+=(--max-duration "$MAX_DURATION")

runs=()
for batch_size in $BATCH_SIZE_SEQ; do
    for gpus in $NUM_GPUS_SEQ; do
        for amp in $AMP; do
            folder="$OUTPUT_DIR/gpus${gpus}_bs${batch_size}_amp_$amp"
            own=("${options[@]}")
            [ "$gpus" -eq 0 ] || own+=(--cudnn-benchmark) # all batches have one shape
            [ "${DRY_RUN:-0}" = 1 ] || rm -rf "$folder" # figures of an earlier run
            NUM_GPUS=$gpus BATCH_SIZE=$batch_size AMP=$amp OUTPUT_DIR=$folder \
                bash scripts/train_jasper.sh "${own[@]}" "$@"
            runs+=("$((gpus > 0 ? gpus : 1))=$folder/nvlog.json")
        done
    done
done
run_or_print "$PYTHON" -m scripts.sequences_table "${runs[@]}"
