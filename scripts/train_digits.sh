#!/usr/bin/env bash
# Trains a small Jasper on the Free Spoken Digit Dataset, in minutes on two CPU cores, and prints its word error rate on
# the takes 0 to 4, which are not in its training data.
#   bash scripts/train_digits.sh  # after scripts/download_fsdd.sh
#   DATASET=/data/fsdd EPOCHS=10 bash scripts/train_digits.sh --resume
# Arguments go to train.py --model Jasper.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

: "${DATASET:=fsdd}" # folder that holds recordings/
: "${OUTPUT_DIR:=output/digits}" # folder for the results
: "${MODEL_CONFIG:=jasper/configs/jasper_digits.yaml}" # YAML file that configures Jasper
: "${EPOCHS:=28}" # epochs in total
: "${WARMUP_EPOCHS:=2}" # epochs in which the learning rate rises
: "${HOLD_EPOCHS:=8}" # epochs at the full learning rate
: "${LEARNING_RATE:=0.02}" # learning rate
: "${BATCH_SIZE:=8}"        # recordings of a micro-batch; batches are length-bucketed
: "${GRAD_ACCUMULATION:=4}" # micro-batches of an update
: "${SEED:=0}" # seed of everything random
: "${NUM_GPUS:=auto}" # `auto`: the GPU if there is one; 0: the CPU

need_whole_numbers 1 999999 EPOCHS BATCH_SIZE GRAD_ACCUMULATION
need_whole_numbers 0 999999 WARMUP_EPOCHS HOLD_EPOCHS
[ -d "$DATASET/recordings" ] || [ "${DRY_RUN:-0}" = 1 ] ||
    die "$DATASET/recordings: no such folder; run scripts/download_fsdd.sh, or set DATASET to the Free Spoken Digit Dataset's"
use_python
MODEL=Jasper resolve_training_gpus 1
run_or_print "$PYTHON" -m scripts.datasets.make_digits_lists "$DATASET" "$OUTPUT_DIR"
training=(
    "$PYTHON" train.py --model Jasper --model-config "$MODEL_CONFIG" --output "$OUTPUT_DIR" --seed "$SEED"
    --dataset-path "$DATASET/recordings"
    --training-files "$OUTPUT_DIR/train.txt" --validation-files "$OUTPUT_DIR/test.txt"
    --epochs "$EPOCHS" --epochs-per-checkpoint 5 --keep-milestones "$EPOCHS"
    --validation-interval 5 --samples-interval "$EPOCHS"
    --learning-rate "$LEARNING_RATE" --lr-policy polynomial
    --warmup-epochs "$WARMUP_EPOCHS" --hold-epochs "$HOLD_EPOCHS"
    --batch-size "$BATCH_SIZE" --gradient-accumulation-steps "$GRAD_ACCUMULATION" --ema-decay 0.99
)
transcribing=(
    "$PYTHON" inference.py --jasper "$OUTPUT_DIR/Jasper_checkpoint_$EPOCHS.pt" --ema --quiet
    --dataset-path "$DATASET/recordings"
    --input "$OUTPUT_DIR/test.txt" --output "$OUTPUT_DIR/transcripts.tsv"
)
add_flags training
add_flags transcribing

# The time is printed at the end, after the figures of each update.
took=$(mktemp)
trap 'rm -f "$took"' EXIT
TIMEFORMAT="%R s, and %U s of CPU time"
{ time run_or_print "${training[@]}" "$@" 2>&3; } 3>&2 2>"$took" || exit
run_or_print "${transcribing[@]}"
[ "${DRY_RUN:-0}" = 1 ] || say "training took $(cat "$took")"
