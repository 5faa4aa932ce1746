#!/usr/bin/env bash
# Measures serve.py under load, on this machine alone: throughput, latency, memory, and that no answer is wrong or lost.
#   FASTPITCH=voice.pt HIFIGAN=vocoder.pt bash scripts/benchmark_serve.sh
#   FASTPITCH=voice.pt HIFIGAN=vocoder.pt bash scripts/benchmark_serve.sh --clients 20 --rounds 1 --batch-size 4
# Arguments go to scripts/benchmarks/serve_load.py; those that it does not have go to serve.py.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
use_python

: "${FASTPITCH:=}" # checkpoint of the voice; empty: the newest
: "${TACOTRON2:=}" # checkpoint of a voice, instead of FASTPITCH
: "${HIFIGAN:=}"   # checkpoint of the vocoder
: "${WAVEGLOW:=}"  # the same, instead of HIFIGAN
: "${HARMONIC:=}"  # the same, instead of HIFIGAN
: "${AMP:=false}" # `true`: mixed precision
: "${NUM_GPUS:=auto}" # `auto`: the GPU if there is one; 0: the CPU

PHRASES="" find_checkpoint "$@"
command=("$PYTHON" -m scripts.benchmarks.serve_load)
add_given command --fastpitch "$FASTPITCH" --tacotron2 "$TACOTRON2" --hifigan "$HIFIGAN" --waveglow "$WAVEGLOW" \
    --harmonic "$HARMONIC"
add_flags command
note_vocoder
exec_or_print "${command[@]}" "$@"
