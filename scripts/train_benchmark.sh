#!/usr/bin/env bash
# Times training of MODEL (HiFi-GAN, WaveGlow, FastPitch, Tacotron2, Jasper) by train.py itself, and prints one table:
# frames/s or, of Jasper, sequences/s in the steady state, with the speed-up of mixed precision and the scaling over GPUs.
#   NUM_GPUS="1 8" AMP="false true" bash scripts/train_benchmark.sh
#   NUM_GPUS=0 BS=4 GRAD_ACCUMULATION=1 EPOCHS=2 CLIPS=40 bash scripts/train_benchmark.sh --preset v3  # a laptop
#   MODEL=Jasper BATCH_SIZE_SEQ="32 64" NUM_GPUS_SEQ="1 4 8" bash scripts/train_benchmark.sh
#   MODEL=Jasper NUM_GPUS_SEQ=0 BATCH_SIZE_SEQ=4 SEQUENCES=32 MAX_DURATION=3 MODEL_CONFIG=jasper/configs/jasper_digits.yaml \
#       bash scripts/train_benchmark.sh  # a laptop
#   LARGEST_BATCH=true MODEL=WaveGlow PRECISIONS="fp32 bfloat16" WN_CHANNELS=256 bash scripts/train_benchmark.sh
#   LARGEST_BATCH=true MODEL=WaveGlow NUM_GPUS=0 MAX_BATCH_SIZE=4 WN_CHANNELS=64 STEPS=2 bash scripts/train_benchmark.sh
# NUM_GPUS, AMP and BS may be several, separated by spaces: each combination is a run. Arguments go to train.py. Without
# LJSpeech-1.1 (DATASET_PATH) the embedded speaker makes a small corpus; its epochs are short, so read its figures with
# care. Without LibriSpeech Jasper trains on noise. LARGEST_BATCH finds the largest batch that fits, and prints mels/s and
# samples/s by batch size; it needs no corpus, and its arguments are those of scripts/benchmarks/largest_batch.py. Other
# variables of scripts/train.sh apply too.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source scripts/lib/originals.sh
choose_model
use_python

: "${MODEL:=HiFi-GAN}" # model
require_model HiFi-GAN WaveGlow FastPitch Tacotron2 Jasper
take_published train_benchmark "$@"
set -- "${arguments[@]}"
: "${LARGEST_BATCH:=false}" # `true`: search for the largest batch instead of training

need_switches LARGEST_BATCH LEARNED_ALIGNMENT=auto LOAD_MEL_FROM_DISK CUDNN_BENCHMARK
if [ "$LARGEST_BATCH" = true ]; then
    : "${NUM_GPUS:=auto}" # `auto`: all there are; 0: the CPU
    : "${WN_CHANNELS:=512}"          # of WaveGlow
    : "${BATCH_SIZE:=1}"             # to begin with
    : "${MAX_BATCH_SIZE:=}"          # to stop at; empty: where memory ends, on the CPU 8
    : "${PRECISIONS:=}"              # of fp32, tf32, float16, bfloat16; empty: those that the machine has
    : "${STEPS:=5}"                  # updates that are timed
    need_whole_numbers 1 99999 BATCH_SIZE MAX_BATCH_SIZE STEPS WN_CHANNELS
    resolve_gpu # another GPU would hold as much
    require_gpus "$NUM_GPUS"
    [ "$NUM_GPUS" -gt 0 ] || : "${MAX_BATCH_SIZE:=8}"
    read_words PRECISIONS
    precisions=("${words[@]}")
    command=("$PYTHON" -m scripts.benchmarks.largest_batch --model "$MODEL" --smallest "$BATCH_SIZE" --steps "$STEPS")
    [ "$MODEL" != WaveGlow ] || command+=(--wn-channels "$WN_CHANNELS")
    add_given command --largest "$MAX_BATCH_SIZE"
    [ "${#precisions[@]}" -eq 0 ] || command+=(--settings "${precisions[@]}")
    [ "$NUM_GPUS" -eq 0 ] || command+=(--cuda)
    exec_or_print "${command[@]}" "$@"
    exit
fi

: "${AMP:=false true}" # `true`: mixed precision
options=()
if [ "$MODEL" = Jasper ]; then
    refuse_variables "MODEL=HiFi-GAN, WaveGlow, FastPitch, Tacotron2" NUM_GPUS BS BATCH_SIZE CLIPS TRAIN_FILELIST VAL_FILELIST
    : "${BATCH_SIZE_SEQ:=32}"  # of one GPU
    : "${NUM_GPUS_SEQ:=auto}" # `auto`: those of 1, 4 and 8 that are there; 0: the CPU
    : "${EPOCHS:=2}" # epochs in total
    : "${MODEL_CONFIG:=jasper/configs/jasper10x5dr_speedp-online_train-benchmark.yaml}" # YAML file that configures Jasper
    : "${DATASET_PATH:=LibriSpeech}" # folder of the corpus
    : "${TRAIN_MANIFEST:=$DATASET_PATH/librispeech-train-clean-100-wav.json}" # manifest, list or folder to train on
    : "${VAL_MANIFEST:=$DATASET_PATH/librispeech-dev-clean-wav.json}" # manifest, list or folder to validate on
    : "${MAX_DURATION:=}" # s; empty: as MODEL_CONFIG says
    : "${SEQUENCES:=}"    # recordings of noise, where there is no corpus; empty: 24 updates of the largest run
    : "${OUTPUT_DIR:=output/train_benchmark_jasper}" # folder for the results
    if [ "$NUM_GPUS_SEQ" = auto ]; then
        resolve_gpus
        NUM_GPUS_SEQ=$(for number in 1 4 8; do [ "$number" -gt "$NUM_GPUS" ] || echo "$number"; done)
    fi
    NUM_GPUS=${NUM_GPUS_SEQ:-0} BS=$BATCH_SIZE_SEQ GRAD_ACCUMULATION=${GRAD_ACCUMULATION:-1} table=sequences
    export KEEP_MILESTONES="" EMA=${EMA:-0}
    add_given options --max-duration "$MAX_DURATION"
else
    refuse_variables MODEL=Jasper BATCH_SIZE_SEQ NUM_GPUS_SEQ MODEL_CONFIG TRAIN_MANIFEST VAL_MANIFEST MAX_DURATION
    refuse_both BS BATCH_SIZE
    : "${NUM_GPUS:=auto}" # `auto`: all there are; 0: the CPU
    [ "$NUM_GPUS" != auto ] || resolve_gpus
    : "${BS:=${BATCH_SIZE:-16}}" # utterances in a micro-batch of one process, or BATCH_SIZE; by default 16
    : "${GRAD_ACCUMULATION:=}" # empty: what makes the published global batch
    : "${EPOCHS:=10}" # epochs in total
    : "${CLIPS:=160}" # sentences of the corpus that is made where there is none
    : "${DATASET_PATH:=LJSpeech-1.1}" # folder of the corpus
    find_ljspeech
    : "${OUTPUT_DIR:=output/train_benchmark}" # folder for the results
    table=training
fi
need_several_numbers 1 99999 BS
need_several_numbers 0 999 NUM_GPUS
need_whole_numbers 1 99999 EPOCHS GRAD_ACCUMULATION CLIPS SEQUENCES
read_words AMP
switches=()
for AMP in "${words[@]}"; do # part of names of folders
    need_switches AMP
    switches+=("$AMP")
done

make_noise() {
    local largest most making
    if [ "$TRAIN_MANIFEST $VAL_MANIFEST" != "$(echo LibriSpeech/librispeech-{train-clean-100,dev-clean}-wav.json)" ]; then
        [ "${DRY_RUN:-0}" != 1 ] || return 0
        die "$TRAIN_MANIFEST: no such manifest; see scripts/preprocess_librispeech.sh"
    fi
    largest=$(tr ' ' '\n' <<<"$BS" | sort -n | tail -n 1)
    most=$(tr ' ' '\n' <<<"$NUM_GPUS" | sort -n | tail -n 1)
    : "${SEQUENCES:=$((24 * largest * (most > 0 ? most : 1)))}"
    DATASET_PATH="$OUTPUT_DIR/noise"
    TRAIN_MANIFEST="$DATASET_PATH/list.txt" VAL_MANIFEST="$DATASET_PATH/list.txt"
    echo "LibriSpeech is not here: training on $SEQUENCES recordings of noise" >&2
    making=("$PYTHON" -m scripts.benchmarks.random_models "$DATASET_PATH" --model Jasper --no-checkpoint --count "$SEQUENCES")
    add_given making --max-duration "$MAX_DURATION"
    run_or_print "${making[@]}" --model-config "$MODEL_CONFIG"
}

make_speech() {
    if [ "$DATASET_PATH ${TRAIN_FILELIST:-}${VAL_FILELIST:-}" != "LJSpeech-1.1 " ]; then
        [ "${DRY_RUN:-0}" != 1 ] || return 0
        die "$DATASET_PATH: no such folder; set DATASET_PATH to a corpus"
    fi
    DATASET_PATH="$OUTPUT_DIR/corpus"
    export TRAIN_FILELIST="$DATASET_PATH/train.txt" VAL_FILELIST="$DATASET_PATH/val.txt"
    if [ "${DRY_RUN:-0}" != 1 ]; then
        echo "LJSpeech-1.1 is not here: the embedded speaker makes a corpus of up to $CLIPS clips" >&2
        mkdir -p "$OUTPUT_DIR"
        { grep -v -e '^#' -e '^ *$' scripts/datasets/corpus_sentences.txt || true; } | sed -n "1,${CLIPS}p" \
            >"$OUTPUT_DIR/sentences.txt"
    fi
    run_or_print "$PYTHON" -m scripts.datasets.make_corpus -o "$DATASET_PATH" --n-validation 2 \
        --sentences "$OUTPUT_DIR/sentences.txt"
    case "$MODEL" in # it has recordings and transcripts alone
        FastPitch) export LEARNED_ALIGNMENT=true ;;
        Tacotron2) export LOAD_MEL_FROM_DISK=false ;;
    esac
}

if [ "$MODEL" = Jasper ]; then
    [ -e "$TRAIN_MANIFEST" ] || make_noise
    export MODEL_CONFIG VAL_MANIFEST TRAIN_MANIFESTS="$TRAIN_MANIFEST"
else
    [ -d "$DATASET_PATH" ] || make_speech
fi
# Nothing but training takes time.
for name in EPOCHS_PER_CHECKPOINT VALIDATION_INTERVAL SAMPLES_INTERVAL; do
    [ -n "${!name:-}" ] || export "$name=$((EPOCHS + 1))"
done
export MODEL EPOCHS DATASET_PATH MINUTES_PER_CHECKPOINT=${MINUTES_PER_CHECKPOINT:-0}

runs=()
for batch_size in $BS; do
    for gpus in $NUM_GPUS; do
        processes=$((gpus > 0 ? gpus : 1))
        read -r global_batch several <<<"${GLOBAL_BATCH[$MODEL]}"
        [ -z "$several" ] || global_batch=1
        accumulation=${GRAD_ACCUMULATION:-$((global_batch / (batch_size * processes)))}
        [ "$accumulation" -gt 0 ] || accumulation=1
        own=("${options[@]}")
        [ "$MODEL" != Jasper ] || [ "$gpus" -eq 0 ] || [ -n "${CUDNN_BENCHMARK:-}" ] || own+=(--cudnn-benchmark) # all batches have one shape
        for amp in "${switches[@]}"; do
            folder="$OUTPUT_DIR/gpus${gpus}_bs${batch_size}_acc${accumulation}_amp_$amp"
            [ "${DRY_RUN:-0}" = 1 ] || rm -rf "$folder" # figures of an earlier run
            NUM_GPUS=$gpus BATCH_SIZE="" BS=$batch_size GRAD_ACCUMULATION=$accumulation AMP=$amp OUTPUT_DIR=$folder \
                run_child bash scripts/train.sh "${own[@]}" "$@"
            runs+=("$processes=$folder/nvlog.json")
        done
    done
done
run_or_print "$PYTHON" -m scripts.benchmarks.table "$table" "${runs[@]}"
