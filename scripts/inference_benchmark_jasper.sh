#!/usr/bin/env bash
# Measures the latency of recognition for batch sizes and lengths of recordings, and prints one table of averages and of
# the 90, 95 and 99 % percentiles; arguments go to inference.py --jasper.
#   BATCH_SIZE_SEQ="1 2 4 8 16" MAX_DURATION_SEQ="2 7 16.7" bash scripts/inference_benchmark_jasper.sh
#   JASPER=output/Jasper_checkpoint_440.pt DATASET_PATH=LibriSpeech bash scripts/inference_benchmark_jasper.sh --ema
#   MODEL_CONFIG=jasper/configs/jasper_digits.yaml BATCH_SIZE_SEQ=1 MAX_DURATION_SEQ=2 ITERATIONS=10 CPU=true \
#       bash scripts/inference_benchmark_jasper.sh               a laptop
#   DRY_RUN=1 bash scripts/inference_benchmark_jasper.sh         prints the commands instead of running them
# All batches of a line have one shape: recordings of up to that duration, with silence after them. Without a checkpoint
# (JASPER) random weights are measured, and without LibriSpeech noise is heard: both take the same time.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"
use_python

: "${JASPER:=}" # checkpoint; empty: random weights for MODEL_CONFIG
: "${MODEL_CONFIG:=jasper/configs/jasper10x5dr_speedp-online_speca.yaml}"
: "${BATCH_SIZE_SEQ:=1 2 4 8 16}"
: "${MAX_DURATION_SEQ:=2 7 16.7}" # s
: "${DATASET_PATH:=LibriSpeech}"
: "${MANIFEST:=$DATASET_PATH/librispeech-dev-clean-wav.json}"
: "${ITERATIONS:=500}" # batches that are measured, about
: "${WARMUP:=}"        # batches before measuring; empty: 16 on a GPU, 2 on a CPU
: "${AMP:=both}"       # true, false, or both, which adds the speed-up
: "${CPU:=false}"      # true: on the CPU, even where there is a GPU
: "${OUTPUT_DIR:=output/benchmark_jasper}"

case "$AMP" in
    true) precisions=(amp) ;;
    false) precisions=(fp32) ;;
    both) precisions=(fp32 amp) ;;
    *) wrong_option "AMP=$AMP: expected true, false or both" ;;
esac
need_whole_numbers ITERATIONS
: "${WARMUP:=$(uses_gpu && echo 16 || echo 2)}"
config="$MODEL_CONFIG" checkpoint="$JASPER"
if [ -z "$JASPER" ]; then
    checkpoint="$OUTPUT_DIR/weights/Jasper_random.pt"
    run_or_print "$PYTHON" -m scripts.random_recogniser "$OUTPUT_DIR/weights" --count 1 --model-config "$config"
fi

logs=()
for duration in $MAX_DURATION_SEQ; do
    for batch_size in $BATCH_SIZE_SEQ; do
        data="$DATASET_PATH" manifest="$MANIFEST"
        if [ ! -e "$MANIFEST" ]; then
            data="$OUTPUT_DIR/noise_${duration}s" manifest="$OUTPUT_DIR/noise_${duration}s/random.json"
            run_or_print "$PYTHON" -m scripts.random_recogniser "$data" --no-checkpoint --all-longest \
                --count "$batch_size" --max-duration "$duration" --model-config "$config"
        fi
        for precision in "${precisions[@]}"; do
            log="$OUTPUT_DIR/nvlog_${precision}_bs${batch_size}_${duration}s.json"
            command=(
                "$PYTHON" inference.py
                --jasper "$checkpoint"
                --input "$manifest"
                --dataset-path "$data"
                --log-file "$log"
                --batch-size "$batch_size"
                --max-duration "$duration"
                --pad-to-max-duration
                --max-utterances "$((batch_size * ITERATIONS))"
                --iterations "$ITERATIONS"
                --warmup-steps "$WARMUP"
            )
            ! uses_gpu || command+=(--cuda --cudnn-benchmark)
            [ "$precision" != amp ] || command+=(--amp)
            command+=("$@")
            [ "${DRY_RUN:-0}" = 1 ] || rm -f "$log" # figures of an earlier run
            run_or_print "${command[@]}"
            logs+=("$log")
        done
    done
done
[ "${DRY_RUN:-0}" = 1 ] || "$PYTHON" -m scripts.recognition_table "${logs[@]}"
