#!/usr/bin/env bash
# Speaks ten sentences with a trained voice; arguments go to inference.py.
#   bash scripts/inference_example.sh                                      with the newest checkpoint in ./output
#   FASTPITCH=voice.pt PHRASES=my.tsv AMP=true bash scripts/inference_example.sh --pace 0.9
#   DRY_RUN=1 bash scripts/inference_example.sh                            prints the command instead of running it
# Without a vocoder's checkpoint among the arguments the sound is made by Griffin-Lim.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"
use_python

: "${FASTPITCH:=}" # checkpoint; empty: the newest in ./output
: "${PHRASES:=phrases/devset10.tsv}"
: "${BATCH_SIZE:=32}"
: "${AMP:=false}"
: "${CPU:=false}" # true: on the CPU, even where there is a GPU
: "${EMA:=false}"
: "${SPEAKER:=0}"

find_checkpoint
name=$(basename "$PHRASES")
precision=$([ "$AMP" = true ] && echo amp || echo fp32)
: "${OUTPUT_DIR:=output/audio_${name%.*}_$precision}"

command=(
    "$PYTHON" inference.py
    --input "$PHRASES"
    --output "$OUTPUT_DIR"
    --fastpitch "$FASTPITCH"
    --speaker "$SPEAKER"
    --batch-size "$BATCH_SIZE"
)
! uses_gpu || command+=(--cuda)
[ "$AMP" != true ] || command+=(--amp)
[ "$EMA" != true ] || command+=(--ema)
command+=("$@")

exec_or_print "${command[@]}"
