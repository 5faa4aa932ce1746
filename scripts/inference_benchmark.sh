#!/usr/bin/env bash
# Measures latency and throughput of inference on phrases of 128 characters, and prints one table of them.
#   BS_SEQUENCE="1 4 8" REPEATS=100 bash scripts/inference_benchmark.sh
#   FASTPITCH=voice.pt AMP=both REPEATS=5 BS_SEQUENCE=1 CPU=true bash scripts/inference_benchmark.sh     a laptop
#   AUDIO=false bash scripts/inference_benchmark.sh        the text-to-mel model alone
#   DRY_RUN=1 bash scripts/inference_benchmark.sh          prints the commands instead of running them
# Arguments go to inference.py, such as a vocoder's checkpoint; without one the sound is made by Griffin-Lim.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"
use_python

: "${FASTPITCH:=}" # checkpoint; empty: the newest in ./output
: "${PHRASES:=phrases/benchmark_8_128.tsv}"
: "${BS_SEQUENCE:=1 4 8}" # batch sizes
: "${REPEATS:=100}"       # times that the list is spoken
: "${WARMUP:=16}"         # batches before measuring
: "${AMP:=false}"         # true, false, or both, which adds the speed-up
: "${CPU:=false}"         # true: on the CPU, even where there is a GPU
: "${AUDIO:=true}"
: "${TORCHSCRIPT:=false}"
: "${OUTPUT_DIR:=output/benchmark_inference}"

find_checkpoint
case "$AMP" in
    true) precisions=(amp) ;;
    false) precisions=(fp32) ;;
    both) precisions=(fp32 amp) ;;
    *) die "AMP=$AMP: expected true, false or both" ;;
esac

logs=()
for precision in "${precisions[@]}"; do
    for batch_size in $BS_SEQUENCE; do
        log="$OUTPUT_DIR/nvlog_infer_${precision}_bs$batch_size.json"
        command=(
            "$PYTHON" inference.py
            --input "$PHRASES"
            --log-file "$log"
            --fastpitch "$FASTPITCH"
            --batch-size "$batch_size"
            --repeats "$REPEATS"
            --warmup-steps "$WARMUP"
        )
        ! uses_gpu || command+=(--cuda --cudnn-benchmark)
        [ "$precision" != amp ] || command+=(--amp)
        [ "$AUDIO" = true ] || command+=(--no-audio)
        [ "$TORCHSCRIPT" != true ] || command+=(--torchscript)
        command+=("$@")
        [ "${DRY_RUN:-0}" = 1 ] || rm -f "$log" # figures of an earlier run
        run_or_print "${command[@]}"
        logs+=("$log")
    done
done
[ "${DRY_RUN:-0}" = 1 ] || "$PYTHON" -m scripts.inference_table "${logs[@]}"
