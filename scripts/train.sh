#!/usr/bin/env bash
# Trains MODEL (FastPitch, Tacotron2, HiFi-GAN, WaveGlow, Harmonic or Jasper) as published; arguments go to train.py.
#   NUM_GPUS=1 BS=64 GRAD_ACCUMULATION=4 AMP=true bash scripts/train.sh --resume
#   NUM_GPUS=0 BS=8 GRAD_ACCUMULATION=32 bash scripts/train.sh  # FastPitch, on the CPU
#   DATASET_PATH=my_voice NAME=my_voice bash scripts/train.sh  # on the lists of scripts/prepare_dataset.sh
#   LEARNED_ALIGNMENT=true ENERGY=true bash scripts/train.sh  # FastPitch 1.1, from recordings and transcripts alone
#   MODEL=Tacotron2 LOAD_MEL_FROM_DISK=false bash scripts/train.sh  # mels computed in training
#   MODEL=HiFi-GAN NUM_GPUS=1 GRAD_ACCUMULATION=8 AMP=true bash scripts/train.sh --no_amp_grouped_conv
#   MODEL=WaveGlow NUM_GPUS=1 BS=10 AMP=true bash scripts/train.sh --wn-channels 256
#   MODEL=Jasper MODEL_CONFIG=jasper/configs/jasper10x5dr_speedp-offline_speca.yaml bash scripts/train.sh
# Variables change the published recipe, which train.py holds; words NAME=value before the arguments are defaults for
# them, as platform/*.sh pass. Paths are relative to the project's folder. For several machines, run it on each with
# NNODES and MASTER_ADDR (host of the first) set, and NODE_RANK if they cannot agree on who is first by themselves.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source scripts/lib/originals.sh
use_python
refuse_both BS BATCH_SIZE # before the defaults
choose_model
choice=""
if [ -z "${MODEL:-}" ]; then # the line may be of any original's script of this name
    [ -z "${BATCH_SIZE:-}" ] || MODEL=HiFi-GAN choice=", as BATCH_SIZE is set" # FastPitch 1.0 calls it BS
    choice="note: training ${MODEL:-FastPitch}$choice; MODEL=$([ -n "$choice" ] && echo FastPitch || echo HiFi-GAN) (or Tacotron2, WaveGlow, Harmonic, Jasper) trains another model"
    [ "${RANK:-0}" = 0 ] || choice=""
fi
defaults=()
while [[ "${1:-}" =~ ^[A-Z][A-Z_0-9]*= ]]; do
    has_variable "${1%%=*}" || wrong_option "$(shown "$1"): scripts/train.sh has no variable ${1%%=*}; its --help lists them"
    defaults+=("$1")
    shift
done

: "${MODEL:=FastPitch}" # model
require_model FastPitch Tacotron2 HiFi-GAN WaveGlow Harmonic Jasper
take_published train "$@"
set -- "${arguments[@]}"
for word in "${defaults[@]}"; do
    name=${word%%=*}
    [ -n "${!name:-}" ] || printf -v "$name" %s "${word#*=}"
    need_plain_value "$name"
done
: "${NUM_GPUS:=auto}" # GPUs of each machine; `auto`: all there are; 0: the CPU
: "${NNODES:=1}" # machines
: "${AMP:=false}" # `true`: mixed precision
: "${OUTPUT_DIR:=./output}" # folder for the results
: "${BS:=}" # utterances, or a vocoder's segments, in a micro-batch of one process; or BATCH_SIZE
: "${GRAD_ACCUMULATION:=}" # micro-batches in an update

need_switches AMP ADVERSARIAL ENERGY LEARNED_ALIGNMENT=auto LOAD_MEL_FROM_DISK CUDNN_BENCHMARK
need_whole_numbers 1 99999 BS BATCH_SIZE GRAD_ACCUMULATION
need_whole_numbers 1 9999 NNODES
need_whole_numbers 1 999999 WORLD_SIZE
need_whole_numbers 0 $((${NNODES:-1} - 1)) NODE_RANK
need_whole_numbers 1 65535 PORT
# What the scripts of the original set besides the recipe; BS is what 16 GB hold.
case "$MODEL-$AMP" in
    FastPitch-*) : "${LEARNED_ALIGNMENT:=auto}" ;;
    Tacotron2-true) : "${BS:=104}" "${LOAD_MEL_FROM_DISK:=true}" ;;
    Tacotron2-*) : "${LOAD_MEL_FROM_DISK:=true}" ;;
    WaveGlow-true) : "${BS:=10}" "${GRAD_CLIP:=65504}" ;;
    Jasper-*) : "${SEED:=0}" ;;
esac

if [ "$MODEL" = Jasper ]; then # NAME is not refused: some systems set it to that of the machine
    refuse_variables "MODEL=FastPitch, Tacotron2, HiFi-GAN, WaveGlow, Harmonic" FILELISTS
else
    : "${NAME:=ljs}" # first part of the lists' names, as of scripts/prepare_dataset.sh; not for Jasper
    : "${FILELISTS:=filelists}" # folder of the lists; not for Jasper
    need_names NAME
fi

# True if a list has FastPitch's columns of mel, duration and pitch; of a list that is not there its name says so.
gives_durations() {
    if [ -f "$1" ]; then
        grep -m 1 '[^[:space:]]' "$1" | grep -qE '^([^|]*\.pt[[:space:]]*\|){3}'
    else
        [[ "${1##*/}" = *_dur_* ]]
    fi
}

# choose_version ARGUMENTS...: makes LEARNED_ALIGNMENT=auto true or false by the training list; version says which and why.
choose_version() {
    local list=${TRAIN_FILELIST:-$(list_path mel_dur_pitch_text train)} reason
    if { [ -n "${TRAIN_FILELIST:-}" ] || [ -f "$list" ]; } && gives_durations "$list"; then
        LEARNED_ALIGNMENT=false version="FastPitch 1.0: $list gives durations; LEARNED_ALIGNMENT=true trains 1.1 without them"
    else
        LEARNED_ALIGNMENT=true reason="$list gives no durations"
        [ -n "${TRAIN_FILELIST:-}" ] || reason="there is no list of durations ($list)"
        [[ " $* " = *" --from-checkpoint "* ]] || : "${ENERGY:=true}" # another voice's network decides
        version="FastPitch 1.1, with learned alignment and ENERGY=${ENERGY:-false}: $reason"
    fi
}
version=""
[ "${LEARNED_ALIGNMENT:-}" != auto ] || [ "$MODEL" != FastPitch ] || choose_version "$@"

options=()
# Variable, option of train.py (-: set below), models that have it (none: all), and after # what it means.
while read -r name option models; do
    models=${models%%#*} models=${models% }
    [ -n "${!name:-}" ] || continue
    [[ -z "$models" || " $models " = *" $MODEL "* ]] || refuse_variables "MODEL=${models// /, }" "$name"
    [ "$option" != - ] || continue
    case "$name=${!name}" in
        ADVERSARIAL=true | ENERGY=true | LEARNED_ALIGNMENT=true | ANNEAL_STEPS=none) options+=("$option") ;; # alone
        ADVERSARIAL=false | ENERGY=false | LEARNED_ALIGNMENT=false) ;;
        GRAD_CLIP=none) options+=("$option" inf) ;;
        TEXT_CLEANERS=* | ANNEAL_STEPS=* | KEEP_MILESTONES=*) read_words "$name" && options+=("$option" "${words[@]}") ;;
        *) options+=("$option" "${!name}") ;;
    esac
done <<'END'
EPOCHS --epochs # epochs in total
EPOCHS_PER_CHECKPOINT --epochs-per-checkpoint # epochs between checkpoints
MINUTES_PER_CHECKPOINT --minutes-per-checkpoint # minutes between checkpoints within epochs; 0: none
KEEP_CHECKPOINTS --keep-checkpoints # of finished epochs, besides the best and the milestones; `all`: all
VALIDATION_INTERVAL --validation-interval # epochs between validations
SAMPLES_INTERVAL --samples-interval # epochs between samples
LEARNING_RATE --learning-rate # learning rate
WEIGHT_DECAY --weight-decay # weight decay
GRAD_CLIP --grad-clip-thresh # largest norm of the gradient; `none`: any
GRAD_ACCUMULATION --gradient-accumulation-steps # micro-batches in an update
EMA --ema-decay # decay of the EMA weights; 0: none
SEED --seed # seed of everything random
CUDNN_BENCHMARK - # `true`: let cuDNN try its algorithms for each shape; the default of WaveGlow on a GPU, else `false`
BATCH_SIZE - # the same as BS; of Jasper, as published, utterances of an update in one process: GRAD_ACCUMULATION divides them
TRAIN_FILELIST - FastPitch Tacotron2 HiFi-GAN WaveGlow Harmonic # list to train on
VAL_FILELIST - FastPitch Tacotron2 HiFi-GAN WaveGlow Harmonic # list to validate on
INPUT_TYPE --input-type FastPitch Tacotron2 # `char`, or `phone`: the lists hold phones
SYMBOL_SET - FastPitch Tacotron2 # `ipa` for phones in IPA; by default `arpabet` for phones
TEXT_CLEANERS --text-cleaners FastPitch Tacotron2 # cleaners, separated by spaces
UNKNOWN_SYMBOLS --unknown-symbols FastPitch Tacotron2 # `error`, or `drop`
LEARNED_ALIGNMENT --learned-alignment FastPitch # `true`: from recordings and transcripts alone (1.1); `false`: from a list of durations (1.0); `auto`, the default: 1.0 where the training list gives durations, else 1.1
ENERGY --energy-conditioning FastPitch # `true`: the voice has an energy control (1.1); the default where `auto` chooses 1.1
PITCH_METHOD --pitch-method FastPitch # how pitch is estimated in training
PITCH_MEAN_STD - FastPitch # pitch statistics (JSON); by default those of the training list
AUDIO_CONFIG --audio-config FastPitch Tacotron2 HiFi-GAN WaveGlow Harmonic # mel settings; by default audio.json of the corpus
NUM_SPEAKERS - FastPitch # speakers; `auto`: as many as the training list names
WARMUP_STEPS --warmup-steps FastPitch # updates in which the learning rate rises
LOAD_MEL_FROM_DISK - Tacotron2 # `false`: the lists hold recordings
ANNEAL_STEPS --anneal-steps Tacotron2 # epochs after which the learning rate falls; `none`
ANNEAL_FACTOR --anneal-factor Tacotron2 # factor by which it falls
CHECKPOINT_INTERVAL --epochs-per-checkpoint HiFi-GAN # epochs between checkpoints
LR_DECAY --lr-decay HiFi-GAN # factor of the learning rate after each epoch
SEGMENT_LENGTH --segment-length WaveGlow # samples of a segment
ADVERSARIAL --adversarial Harmonic # `true`: train against HiFi-GAN's discriminators, too
MODEL_CONFIG - Jasper # YAML file that configures Jasper
TRAIN_MANIFESTS - Jasper # manifests, lists or folders to train on, separated by spaces
VAL_MANIFEST - Jasper # manifests, lists or folders to validate on, separated by spaces
KEEP_MILESTONES --keep-milestones Jasper # epochs whose checkpoints are kept; empty: none
MIN_LEARNING_RATE --min-lr Jasper # smallest learning rate
LR_POLICY --lr-policy Jasper # how the learning rate falls
LR_EXP_GAMMA --lr-exp-gamma Jasper # factor of the exponential policy
WARMUP_EPOCHS --warmup-epochs Jasper # epochs in which the learning rate rises
HOLD_EPOCHS --hold-epochs Jasper # epochs at the full learning rate
END

batch_size=${BATCH_SIZE:-$BS}
if [ "$MODEL" = Jasper ] && [ -n "${BATCH_SIZE:-}" ]; then
    number=${GRAD_ACCUMULATION:-2}
    [ "$number" -gt 0 ] && [ "$((BATCH_SIZE % number))" = 0 ] ||
        wrong_option "BATCH_SIZE=$BATCH_SIZE: expected a multiple of GRAD_ACCUMULATION=$number, which divides it"
    batch_size=$((BATCH_SIZE / number))
fi
resolve_training_gpus
set_launcher "${MODEL,,}"
add_given options --batch-size "$batch_size"
read -r -a published <<<"${PROCESS_BATCH[$MODEL]}"
[[ " $* " = *" --from-checkpoint "* ]] || # a new voice from another one has no published batch
    note_global_batch "${batch_size:-${published[0]}}" "${GRAD_ACCUMULATION:-${published[1]}}"

if [ "$MODEL" = Jasper ]; then
    : "${DATASET_PATH:=LibriSpeech}" # folder of the corpus, LibriSpeech of Jasper
    read_words TRAIN_MANIFESTS
    training_files=("${words[@]}")
    [ "${#words[@]}" -gt 0 ] || training_files=("$DATASET_PATH"/librispeech-{train-clean-100,train-clean-360,train-other-500}-wav.json)
    read_words VAL_MANIFEST
    validation_files=("${words[@]}")
    [ "${#words[@]}" -gt 0 ] || validation_files=("$DATASET_PATH/librispeech-dev-clean-wav.json")
    add_given options --model-config "${MODEL_CONFIG:-}"
    [ -n "${KEEP_MILESTONES-unset}" ] || options+=(--keep-milestones) # empty: no milestones
else
    : "${DATASET_PATH:=LJSpeech-1.1}" # folder of the corpus
    find_ljspeech
    case "$MODEL" in
        FastPitch) columns=$([ "$LEARNED_ALIGNMENT" = true ] && echo audio_text || echo mel_dur_pitch_text) ;;
        Tacotron2) columns=$([ "$LOAD_MEL_FROM_DISK" = true ] && echo mel_text || echo audio_text) ;;
        *) columns=audio ;;
    esac
    training_files=("${TRAIN_FILELIST:-$(list_path "$columns" train)}")
    validation_files=("${VAL_FILELIST:-$(list_path "$columns" val)}")
    if [ -z "${VAL_FILELIST:-}" ] && [ -f "${training_files[0]}" ] && ! [ -f "${validation_files[0]}" ]; then
        validation_files=("${training_files[0]}") # prepared with N_VAL=0
    fi
fi
if [ "${INPUT_TYPE:-char}" = phone ]; then : "${SYMBOL_SET:=arpabet}"; fi
add_given options --symbol-set "${SYMBOL_SET:-}"
[ "${LOAD_MEL_FROM_DISK:-false}" != true ] || options+=(--load-mel-from-disk)
if [ "$MODEL" = FastPitch ]; then
    [ "${NUM_SPEAKERS:=1}" = auto ] || options+=(--n-speakers "$NUM_SPEAKERS") # auto: all that the training list names
    if [ "$columns" = mel_dur_pitch_text ]; then
        # scripts/prepare_dataset.sh names the statistics after the list of recordings that the training list is made of.
        list=$(basename -- "${training_files[0]}" .txt)
        : "${PITCH_MEAN_STD:=$DATASET_PATH/pitch_char_stats__${list/mel_dur_pitch_text/audio_text}.json}"
    fi
    add_given options --pitch-mean-std-file "${PITCH_MEAN_STD:-}"
fi
[ "$NUM_GPUS" -eq 0 ] || options+=(--cuda)
: "${CUDNN_BENCHMARK:=$([ "$NUM_GPUS" -eq 0 ] || [ "$MODEL" != WaveGlow ] || echo true)}" # all segments have one shape
[ "$CUDNN_BENCHMARK" != true ] || options+=(--cudnn-benchmark)
[ "$AMP" != true ] || options+=(--amp)

[ -z "$version" ] || [ "${RANK:-0}" != 0 ] || echo "$version" >&2
exec_or_print "${launcher[@]}" train.py --model "$MODEL" --output "$OUTPUT_DIR" --dataset-path "$DATASET_PATH" \
    --training-files "${training_files[@]}" --validation-files "${validation_files[@]}" "${options[@]}" "$@"
