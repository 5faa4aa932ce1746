#!/usr/bin/env bash
# Measures latency and throughput of MODEL (FastPitch, Tacotron2, HiFi-GAN, WaveGlow, Harmonic or Jasper), and prints one table.
#   BS_SEQUENCE="1 4 8" REPEATS=100 bash scripts/inference_benchmark.sh  # phrases of 128 characters
#   FASTPITCH=voice.pt HIFIGAN=vocoder.pt AMP=both bash scripts/inference_benchmark.sh --cuda-graphs
#   FASTPITCH=voice.pt AMP=both REPEATS=5 BATCH_SIZE=1 NUM_GPUS=0 bash scripts/inference_benchmark.sh  # a laptop
#   AUDIO=false bash scripts/inference_benchmark.sh  # the text-to-mel model alone
#   TACOTRON2=voice.pt WAVEGLOW=vocoder.pt bash scripts/inference_benchmark.sh
#   HIFIGAN=vocoder.pt PHRASES=mels.tsv bash scripts/inference_benchmark.sh  # the vocoder alone
#   MODEL=HiFi-GAN BATCH_SIZE=1 REPEATS=5 NUM_GPUS=0 bash scripts/inference_benchmark.sh  # random-v1, and the paper's layers
#   WAVEGLOW=random-256 bash scripts/inference_benchmark.sh  # the same of WaveGlow with 256 or 512 channels
#   MODEL=Harmonic NUM_GPUS=0 REPEATS=5 bash scripts/inference_benchmark.sh  # random-256: Harmonic
#   JASPER=jasper.pt BATCH_SIZE_SEQ="1 8" MAX_DURATION_SEQ="2 7" bash scripts/inference_benchmark.sh --ema  # recognition
#   MODEL=Jasper MODEL_CONFIG=jasper/configs/jasper_digits.yaml BATCH_SIZE_SEQ=1 MAX_DURATION_SEQ=2 ITERATIONS=10 \
#       NUM_GPUS=0 bash scripts/inference_benchmark.sh  # Jasper on a laptop
# The vocoder alone speaks the mels or the recordings of a list with the column mel or wav, or, of random weights, random
# mels of 8.05 s: they take the same time. A network's first sound of a sentence of 20 s, streamed, is timed too. Recognition is of batches of recordings of up to MAX_DURATION_SEQ, padded.
# Arguments go to inference.py. Without a vocoder's checkpoint a downloaded one for the voice makes the sound, or that in ./voices,
# or Griffin-Lim. Without a checkpoint of Jasper (JASPER) random weights are measured, and without LibriSpeech noise: both take the same time.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source scripts/lib/originals.sh
choose_model
use_python

: "${MODEL:=FastPitch}" # model
: "${WARMUP:=}"    # batches before measuring; empty: 16 on a GPU, 2 on a CPU
: "${NUM_GPUS:=auto}" # `auto`: the GPU if there is one; 0: the CPU
: "${CUDNN_BENCHMARK:=true}" # `true`: cuDNN tries its algorithms for each shape, on a GPU
require_model FastPitch Tacotron2 HiFi-GAN WaveGlow Harmonic Jasper
take_published inference_benchmark "$@"
set -- "${arguments[@]}"
case "$MODEL" in
    Jasper)
        refuse_variables "MODEL=FastPitch, Tacotron2, HiFi-GAN, WaveGlow, Harmonic" \
            FASTPITCH TACOTRON2 HIFIGAN WAVEGLOW HARMONIC DENOISING PHRASES BS_SEQUENCE BATCH_SIZE REPEATS AUDIO TORCHSCRIPT
        : "${JASPER:=}" # checkpoint; empty: random weights for MODEL_CONFIG
        : "${MODEL_CONFIG:=jasper/configs/jasper10x5dr_speedp-online_speca.yaml}" # YAML file that configures Jasper
        : "${BATCH_SIZE_SEQ:=1 2 4 8 16}" # batch sizes
        : "${MAX_DURATION_SEQ:=2 7 16.7}" # s, of the recordings of a batch
        : "${DATASET_PATH:=LibriSpeech}" # folder of the corpus
        : "${MANIFEST:=$DATASET_PATH/librispeech-dev-clean-wav.json}" # manifest or list to transcribe
        : "${PAD_TO_MAX_DURATION:=true}" # `false`: pad batches to their longest recording
        : "${ITERATIONS:=500}" # batches that are measured, about
        : "${AMP:=both}"       # true, false, or both, which adds the speed-up
        : "${OUTPUT_DIR:=output/benchmark_jasper}" # folder for the results
        ;;
    *)
        refuse_variables MODEL=Jasper JASPER MODEL_CONFIG BATCH_SIZE_SEQ MAX_DURATION_SEQ MANIFEST ITERATIONS PAD_TO_MAX_DURATION
        : "${FASTPITCH:=}"  # checkpoint; empty: the newest in ./output, or none for a list with the column mel or wav
        : "${TACOTRON2:=}"  # checkpoint of a voice, instead of FASTPITCH
        : "${HIFIGAN:=$([ "$MODEL" != HiFi-GAN ] || echo random-v1)}" # checkpoint of the vocoder, or random-v1, -v2, -v3
        : "${WAVEGLOW:=$([ "$MODEL" != WaveGlow ] || echo random-256)}" # the same, or random-256, random-512
        : "${HARMONIC:=$([ "$MODEL" != Harmonic ] || echo random-256)}" # the same, or random-256, of that many channels
        : "${DENOISING:=0}" # how much of the vocoder's own noise is subtracted
        : "${PHRASES:=}"    # empty: texts of 128 characters, or mels of 8.05 s for a random vocoder without a voice
        : "${BATCH_SIZE:=1 4 8}" # batch size
        : "${BS_SEQUENCE:=$BATCH_SIZE}" # batch sizes
        : "${REPEATS:=100}"             # times that the list is synthesized
        : "${AMP:=false}"               # true, false, or both, which adds the speed-up
        : "${AUDIO:=true}" # `false`: measure the text-to-mel model only
        : "${TORCHSCRIPT:=false}" # `true`: compile the networks to TorchScript
        : "${OUTPUT_DIR:=output/benchmark_inference}" # folder for the results
        ;;
esac
need_switches AMP=both AUDIO TORCHSCRIPT PAD_TO_MAX_DURATION CUDNN_BENCHMARK
case "$AMP" in
    true) precisions=(amp) ;;
    false) precisions=(fp32) ;;
    both) precisions=(fp32 amp) ;;
esac
need_whole_numbers 1 99999 REPEATS ITERATIONS
need_whole_numbers 0 99999 WARMUP
need_several_numbers 1 99999 BS_SEQUENCE BATCH_SIZE_SEQ
for duration in ${MAX_DURATION_SEQ:-}; do # part of names of folders
    [[ "$duration" =~ ^[0-9]{1,6}(\.[0-9]{1,6})?$ ]] ||
        wrong_option "MAX_DURATION_SEQ=$(shown "$MAX_DURATION_SEQ"): expected seconds, such as 2 7 16.7"
done
resolve_gpu
: "${WARMUP:=$(uses_gpu && echo 16 || echo 2)}" # batches before measuring

logs=()
tries_algorithms() {
    uses_gpu && [ "$CUDNN_BENCHMARK" = true ]
}
# measure LOG PRECISION OPTIONS...: one run of inference.py with the arguments of this script after those options.
measure() {
    local command=("$PYTHON" inference.py --log-file "$1" --warmup-steps "$WARMUP" "${@:3}")
    ! uses_gpu || command+=(--cuda)
    ! tries_algorithms || command+=(--cudnn-benchmark)
    [ "$2" != amp ] || command+=(--amp)
    [ "${DRY_RUN:-0}" = 1 ] || rm -f "$1" # figures of an earlier run
    run_or_print "${command[@]}" "${arguments[@]}"
    logs+=("$1")
}
arguments=("$@")

measure_recognition() {
    local duration batch_size precision data manifest padding checkpoint="$JASPER"
    if [ -z "$JASPER" ]; then
        checkpoint="$OUTPUT_DIR/weights/Jasper_random.pt"
        run_or_print "$PYTHON" -m scripts.benchmarks.random_models "$OUTPUT_DIR/weights" --model Jasper --count 1 \
            --model-config "$MODEL_CONFIG"
    fi
    for duration in $MAX_DURATION_SEQ; do
        for batch_size in $BATCH_SIZE_SEQ; do
            data="$DATASET_PATH" manifest="$MANIFEST"
            if [ ! -e "$MANIFEST" ]; then
                data="$OUTPUT_DIR/noise_${duration}s" manifest="$OUTPUT_DIR/noise_${duration}s/list.txt"
                run_or_print "$PYTHON" -m scripts.benchmarks.random_models "$data" --model Jasper --no-checkpoint --all-longest \
                    --count "$batch_size" --max-duration "$duration" --model-config "$MODEL_CONFIG"
            fi
            padding=()
            [ "$PAD_TO_MAX_DURATION" != true ] || padding=(--pad-to-max-duration)
            for precision in "${precisions[@]}"; do
                measure "$OUTPUT_DIR/nvlog_${precision}_bs${batch_size}_${duration}s.json" "$precision" \
                    --jasper "$checkpoint" --input "$manifest" --dataset-path "$data" --batch-size "$batch_size" \
                    --max-duration "$duration" "${padding[@]}" --iterations "$ITERATIONS" \
                    --max-utterances "$((batch_size * ITERATIONS))"
            done
        done
    done
}

measure_inference() {
    local vocoder name model kind largest precision batch_size options
    for vocoder in HIFIGAN=HiFi-GAN WAVEGLOW=WaveGlow HARMONIC=Harmonic; do
        name=${vocoder%=*} model=${vocoder#*=}
        [[ "${!name}" = random-* ]] || continue
        kind=${!name#random-}
        largest=$(tr ' ' '\n' <<<"$BS_SEQUENCE" | sort -n | tail -n 1)
        run_or_print "$PYTHON" -m scripts.benchmarks.random_models "$OUTPUT_DIR" --model "$model" --kind "$kind" \
            --count "$largest"
        printf -v "$name" %s "$OUTPUT_DIR/${model}_$kind.pt"
        [ -n "$FASTPITCH$TACOTRON2$PHRASES" ] || PHRASES="$OUTPUT_DIR/random_mels.tsv"
    done
    : "${PHRASES:=phrases/benchmark_8_128.tsv}" # list to speak
    if [[ "$HIFIGAN" = "$OUTPUT_DIR"/HiFi-GAN_v?.pt && -z "$FASTPITCH$TACOTRON2" ]]; then
        options=("$HIFIGAN" --repeats "$REPEATS")
        ! uses_gpu || options+=(--cuda)
        ! tries_algorithms || options+=(--cudnn-benchmark)
        [ "$AMP" = false ] || options+=(--amp)
        run_or_print "$PYTHON" -m scripts.benchmarks.vocoder "${options[@]}"
    fi
    # A list that is made by the commands above is not there to be read in a dry run.
    [ "$PHRASES" = "$OUTPUT_DIR/random_mels.tsv" ] || { find_checkpoint "${arguments[@]}"; note_vocoder; }
    options=(--input "$PHRASES" --repeats "$REPEATS")
    add_given options --fastpitch "$FASTPITCH" --tacotron2 "$TACOTRON2"
    if [ "$AUDIO" != true ]; then
        options+=(--no-audio)
    else
        add_given options --hifigan "$HIFIGAN" --waveglow "$WAVEGLOW" --harmonic "$HARMONIC"
        [ -z "$HIFIGAN$WAVEGLOW$HARMONIC" ] || options+=(--denoising-strength "$DENOISING")
    fi
    [ "$TORCHSCRIPT" != true ] || options+=(--torchscript)
    for precision in "${precisions[@]}"; do
        for batch_size in $BS_SEQUENCE; do
            measure "$OUTPUT_DIR/nvlog_infer_${precision}_bs$batch_size.json" "$precision" "${options[@]}" \
                --batch-size "$batch_size"
        done
        measure_first_sound "$precision"
    done
}

# How soon a sentence of 20 s begins that is streamed; Tacotron 2 cannot be told to speak for so long.
measure_first_sound() {
    local vocoder="$HIFIGAN$WAVEGLOW$HARMONIC" options=(--denoising-strength "$DENOISING")
    [ "$AUDIO" = true ] && [ -n "$vocoder" ] && [ -z "$TACOTRON2" ] || return 0
    ! uses_gpu || options+=(--cuda --cudnn-benchmark)
    [ "$1" != amp ] || options+=(--amp)
    add_given options --voice "$FASTPITCH"
    run_or_print "$PYTHON" -m scripts.benchmarks.first_sound "$vocoder" "${options[@]}"
}

if [ "$MODEL" = Jasper ]; then table=recognition; else table=inference; fi
"measure_$table"
[ "${DRY_RUN:-0}" = 1 ] || run_child "$PYTHON" -m scripts.benchmarks.table "$table" "${logs[@]}"
