#!/usr/bin/env bash
# Prints the word and character error rates of a Jasper on LibriSpeech's development and test sets, or on other lists.
#   JASPER=output/Jasper_checkpoint_440.pt bash scripts/evaluation.sh
#   DATASETS="dev-clean" AMP=true EMA=true bash scripts/evaluation.sh
#   MANIFESTS=my_voice/list.txt DATASET_PATH=my_voice bash scripts/evaluation.sh --no-trim-silence
# Arguments go to inference.py --jasper CHECKPOINT. Transcripts go to OUTPUT_DIR/<list>.json.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
use_python

: "${JASPER:=}" # checkpoint; empty: the newest in ./output
: "${DATASET_PATH:=LibriSpeech}" # folder of the corpus
: "${DATASETS:=dev-clean dev-other test-clean test-other}" # subsets of LibriSpeech to evaluate
: "${MANIFESTS:=$(printf "$DATASET_PATH/librispeech-%s-wav.json " $DATASETS)}" # lists or manifests, instead of DATASETS
: "${BATCH_SIZE:=16}" # batch size
: "${AMP:=false}" # `true`: mixed precision
: "${EMA:=}" # `true`: use the EMA weights; `false`: the raw ones; empty: EMA weights where there are any
: "${NUM_GPUS:=auto}" # `auto`: the GPU if there is one; 0: the CPU
: "${OUTPUT_DIR:=output/evaluation}" # folder for the results

find_newest JASPER Jasper scripts/train_jasper.sh
for manifest in $MANIFESTS; do
    [ -e "$manifest" ] || [ "${DRY_RUN:-0}" = 1 ] || die "$manifest: no such manifest; scripts/preprocess_librispeech.sh makes LibriSpeech's"
    name=$(basename "$manifest")
    command=("$PYTHON" inference.py --jasper "$JASPER" --input "$manifest" --dataset-path "$DATASET_PATH")
    command+=(--output "$OUTPUT_DIR/${name%.*}.json" --batch-size "$BATCH_SIZE" --quiet)
    add_flags command
    echo "$manifest"
    run_or_print "${command[@]}" "$@"
done
