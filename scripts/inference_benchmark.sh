#!/usr/bin/env bash
# Measures latency and throughput of inference on phrases of 128 characters, and prints one table of them.
#   BS_SEQUENCE="1 4 8" REPEATS=100 bash scripts/inference_benchmark.sh
#   FASTPITCH=voice.pt HIFIGAN=vocoder.pt AMP=both bash scripts/inference_benchmark.sh --cuda-graphs
#   FASTPITCH=voice.pt AMP=both REPEATS=5 BATCH_SIZE=1 CPU=true bash scripts/inference_benchmark.sh      a laptop
#   AUDIO=false bash scripts/inference_benchmark.sh        the text-to-mel model alone
#   HIFIGAN=vocoder.pt PHRASES=mels.tsv bash scripts/inference_benchmark.sh   the vocoder alone, on the mels or the
#                                                          recordings of a list with the column mel or wav
#   HIFIGAN=random-v1 AMP=both BATCH_SIZE=1 REPEATS=5 CPU=true bash scripts/inference_benchmark.sh   the same with
#                                                          random weights and random mels of 8.05 s, for its speed alone
#   WAVEGLOW=random-256 AMP=both BATCH_SIZE=1 REPEATS=5 bash scripts/inference_benchmark.sh   WaveGlow, 256 or 512 channels
#   TACOTRON2=voice.pt WAVEGLOW=vocoder.pt bash scripts/inference_benchmark.sh
#   DRY_RUN=1 bash scripts/inference_benchmark.sh          prints the commands instead of running them
# Arguments go to inference.py. Without a vocoder's checkpoint the sound is made by Griffin-Lim.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"
use_python

: "${FASTPITCH:=}"  # checkpoint; empty: the newest in ./output, or none for a list with the column mel or wav
: "${TACOTRON2:=}"  # checkpoint of a voice, instead of FASTPITCH
: "${HIFIGAN:=}"    # checkpoint of the vocoder, or random-v1, random-v2, random-v3
: "${WAVEGLOW:=}"   # the same, instead of HIFIGAN, or random-256, random-512
: "${DENOISING:=0}" # how much of the vocoder's own noise is subtracted
: "${PHRASES:=}"    # empty: texts of 128 characters, or mels of 8.05 s for a random vocoder without a voice
: "${BATCH_SIZE:=1 4 8}"
: "${BS_SEQUENCE:=$BATCH_SIZE}" # batch sizes
: "${REPEATS:=100}"             # times that the list is spoken
: "${CPU:=false}"               # true: on the CPU, even where there is a GPU
: "${WARMUP:=}"                 # batches before measuring; empty: 16 on a GPU, 2 on a CPU
: "${AMP:=false}"               # true, false, or both, which adds the speed-up
: "${AUDIO:=true}"
: "${TORCHSCRIPT:=false}"
: "${OUTPUT_DIR:=output/benchmark_inference}"

case "$AMP" in
    true) precisions=(amp) ;;
    false) precisions=(fp32) ;;
    both) precisions=(fp32 amp) ;;
    *) wrong_option "AMP=$AMP: expected true, false or both" ;;
esac
for vocoder in HIFIGAN=HiFi-GAN WAVEGLOW=WaveGlow; do
    name=${vocoder%=*} model=${vocoder#*=}
    [[ "${!name}" = random-* ]] || continue
    kind=${!name#random-}
    largest=$(tr ' ' '\n' <<<"$BS_SEQUENCE" | sort -n | tail -n 1)
    run_or_print "$PYTHON" -m scripts.random_vocoder "$kind" "$OUTPUT_DIR" --model "$model" --count "$largest"
    printf -v "$name" %s "$OUTPUT_DIR/${model}_$kind.pt"
    [ -n "$FASTPITCH$TACOTRON2$PHRASES" ] || PHRASES="$OUTPUT_DIR/random_mels.tsv"
done
: "${PHRASES:=phrases/benchmark_8_128.tsv}"
: "${WARMUP:=$(uses_gpu && echo 16 || echo 2)}"
# A list that is only now to be made cannot be looked into.
[ "$PHRASES" = "$OUTPUT_DIR/random_mels.tsv" ] || find_checkpoint

logs=()
for precision in "${precisions[@]}"; do
    for batch_size in $BS_SEQUENCE; do
        log="$OUTPUT_DIR/nvlog_infer_${precision}_bs$batch_size.json"
        command=(
            "$PYTHON" inference.py
            --input "$PHRASES"
            --log-file "$log"
            --batch-size "$batch_size"
            --repeats "$REPEATS"
            --warmup-steps "$WARMUP"
        )
        [ -z "$FASTPITCH" ] || command+=(--fastpitch "$FASTPITCH")
        [ -z "$TACOTRON2" ] || command+=(--tacotron2 "$TACOTRON2")
        if [ "$AUDIO" != true ]; then
            command+=(--no-audio)
        else
            [ -z "$HIFIGAN" ] || command+=(--hifigan "$HIFIGAN")
            [ -z "$WAVEGLOW" ] || command+=(--waveglow "$WAVEGLOW")
            [ -z "$HIFIGAN$WAVEGLOW" ] || command+=(--denoising-strength "$DENOISING")
        fi
        ! uses_gpu || command+=(--cuda --cudnn-benchmark)
        [ "$precision" != amp ] || command+=(--amp)
        [ "$TORCHSCRIPT" != true ] || command+=(--torchscript)
        command+=("$@")
        [ "${DRY_RUN:-0}" = 1 ] || rm -f "$log" # figures of an earlier run
        run_or_print "${command[@]}"
        logs+=("$log")
    done
done
[ "${DRY_RUN:-0}" = 1 ] || "$PYTHON" -m scripts.inference_table "${logs[@]}"
