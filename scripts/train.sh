#!/usr/bin/env bash
# Trains FastPitch as published; everything can be set through environment variables, arguments go to train.py.
#   NUM_GPUS=1 BS=64 GRAD_ACCUMULATION=4 AMP=true bash scripts/train.sh --resume
#   NUM_GPUS=0 BS=16 bash scripts/train.sh      on the CPU
#   DRY_RUN=1 bash scripts/train.sh             prints the command instead of running it
# Paths are relative to the project's folder. For several machines, run it on each with NNODES and MASTER_ADDR
# (host of the first) set, and NODE_RANK if the machines cannot agree on who is first by themselves.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"
use_python

: "${NUM_GPUS:=8}"          # on each machine; 0 trains on the CPU
: "${BS:=32}"               # utterances in a micro-batch of one process
: "${GRAD_ACCUMULATION:=1}" # micro-batches in an update
: "${AMP:=false}"
: "${OUTPUT_DIR:=./output}"
: "${EPOCHS:=1500}"
: "${EPOCHS_PER_CHECKPOINT:=50}"
: "${LEARNING_RATE:=0.1}"
: "${WARMUP_STEPS:=1000}"
: "${SEED:=1234}"
: "${DATASET_PATH:=LJSpeech-1.1}"
: "${TRAIN_FILELIST:=filelists/ljs_mel_dur_pitch_text_train_filelist.txt}"
: "${VAL_FILELIST:=filelists/ljs_mel_dur_pitch_text_val_filelist.txt}"
: "${INPUT_TYPE:=char}" # or phone
: "${SYMBOL_SET:=$([ "$INPUT_TYPE" = phone ] && echo arpabet || echo english_basic)}"
: "${TEXT_CLEANERS:=english_cleaners_v3}" # several are separated by blanks; published voices: english_cleaners
: "${UNKNOWN_SYMBOLS:=error}" # drop: as published, which LJSpeech's double quotes need with english_cleaners
: "${NUM_SPEAKERS:=1}"
: "${NNODES:=1}" # machines

# scripts/prepare_dataset.sh makes the statistics from the list of recordings that the training list comes from.
stem=$(basename "$TRAIN_FILELIST" .txt)
: "${PITCH_MEAN_STD:=$DATASET_PATH/pitch_char_stats__${stem/mel_dur_pitch_text/audio_text}.json}"

is_whole_number() {
    [[ "$2" =~ ^[0-9]+$ ]] || die "$1=$2: expected a whole number"
}
for name in NUM_GPUS BS GRAD_ACCUMULATION NNODES; do
    is_whole_number "$name" "${!name}"
done

processes=$((NUM_GPUS > 0 ? NUM_GPUS : 1))
world_size=$((processes * NNODES))
command=("$PYTHON")
if [ -n "${WORLD_SIZE:-}" ]; then # one process a GPU is started from outside, as scripts/slurm_train.sh does
    world_size=$WORLD_SIZE
elif [ "$NNODES" -gt 1 ]; then
    [ -n "${MASTER_ADDR:-}" ] || die "NNODES=$NNODES needs MASTER_ADDR, the host name of the first machine"
    : "${PORT:=29500}"
    command+=(-m torch.distributed.run --nnodes "$NNODES" --nproc-per-node "$processes")
    if [ -n "${NODE_RANK:-}" ]; then
        command+=(--node-rank "$NODE_RANK" --master-addr "$MASTER_ADDR" --master-port "$PORT")
    else
        command+=(--rdzv-backend c10d --rdzv-id "${RUN_ID:-fastpitch}" --rdzv-endpoint "$MASTER_ADDR:$PORT")
    fi
elif [ "$processes" -gt 1 ]; then
    command+=(-m torch.distributed.run --nproc-per-node "$processes")
    if [ -n "${PORT:-}" ]; then
        command+=(--master-port "$PORT")
    else
        command+=(--standalone) # finds a free port by itself
    fi
fi

require_gpus "$NUM_GPUS"
global_batch=$((world_size * BS * GRAD_ACCUMULATION))
if [ "$global_batch" != 256 ] && [ "${RANK:-0}" = 0 ]; then
    echo "note: the global batch is $global_batch utterances (processes x batch x accumulated: $world_size x $BS x" \
        "$GRAD_ACCUMULATION); the published settings are for 256" >&2
fi

read -r -a cleaners <<<"$TEXT_CLEANERS"
command+=(
    train.py
    --model FastPitch
    --output "$OUTPUT_DIR"
    --dataset-path "$DATASET_PATH"
    --training-files "$TRAIN_FILELIST"
    --validation-files "$VAL_FILELIST"
    --pitch-mean-std-file "$PITCH_MEAN_STD"
    --input-type "$INPUT_TYPE"
    --symbol-set "$SYMBOL_SET"
    --text-cleaners "${cleaners[@]}"
    --unknown-symbols "$UNKNOWN_SYMBOLS"
    --n-speakers "$NUM_SPEAKERS"
    --epochs "$EPOCHS"
    --epochs-per-checkpoint "$EPOCHS_PER_CHECKPOINT"
    --warmup-steps "$WARMUP_STEPS"
    --learning-rate "$LEARNING_RATE"
    --batch-size "$BS"
    --gradient-accumulation-steps "$GRAD_ACCUMULATION"
    --seed "$SEED"
)
[ "$NUM_GPUS" -eq 0 ] || command+=(--cuda)
[ "$AMP" != true ] || command+=(--amp)
command+=("$@")

exec_or_print "${command[@]}"
