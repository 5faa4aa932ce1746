#!/usr/bin/env bash
# Trains the small voice and vocoder that the project ships, from recordings of one speaker and embedded speakers.
#   bash scripts/train_voices.sh  # downloads LJSpeech where DATASET_PATH is not there
#   DATASET_PATH=clips OUTPUT_DIR=output/trial NUM_GPUS=0 bash scripts/train_voices.sh
#   STAGES="vocoder" DRY_RUN=1 bash scripts/train_voices.sh
# The vocoder learns from all of them; the voice begins with all speakers and is fine-tuned to the recordings.
# Each stage is skipped when it is finished and resumed when it was stopped; the result is lj-small.pt and
# vocoder-small.pt in VOICES. Clips of HELD_BACK are in no training: measure with them (docs/BENCHMARKS.md).
# On a CPU one core does (OMP_NUM_THREADS=1): about half an hour for the vocoder, two for the voice.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

: "${DATASET_PATH:=LJSpeech-1.1}" # folder of the recordings, in LJSpeech's layout
: "${HELD_BACK:=$(printf 'LJ001-%04d ' {73..80})}" # its clips that are not trained on
: "${OUTPUT_DIR:=output/voices}" # folder for corpora, lists and checkpoints
: "${VOICES:=voices}" # folder for the two files
: "${STAGES:=data vocoder voice}" # what to do, in this order
: "${VOCODER_EPOCHS:=100}" # epochs of the vocoder
: "${BASE_EPOCHS:=12}" # epochs of the voice on embedded speakers and the recordings
: "${VOICE_EPOCHS:=200}" # epochs of its fine-tuning
: "${NUM_GPUS:=auto}" # `auto`: the GPU if there is one; 0: the CPU
find_ljspeech

need_whole_numbers 1 999999 VOCODER_EPOCHS BASE_EPOCHS VOICE_EPOCHS
read_words HELD_BACK
held_back=("${words[@]}")
read_words STAGES
stages=("${words[@]}")
for stage in "${stages[@]}"; do
    [[ " data vocoder voice " = *" $stage "* ]] || wrong_option "STAGES=$(shown "$STAGES"): expected of data, vocoder and voice"
done
ensure_venv
MODEL=Harmonic BS=8 resolve_training_gpus 1
export NUM_GPUS
data=$OUTPUT_DIR/data

# run_once FILE COMMAND...: runs it unless FILE, which it makes, is there.
run_once() {
    if [ -f "$1" ] && [ "${DRY_RUN:-0}" != 1 ]; then
        say "$1 is there"
    elif [ "$2" = env ]; then # a script, which prints its commands itself with DRY_RUN=1
        run_child "${@:2}"
    else
        run_or_print "${@:2}"
    fi
}

# strip DTYPE CHECKPOINT FILE: writes the weights that infer into FILE, anew.
strip() {
    [ "${DRY_RUN:-0}" = 1 ] || rm -f "$3"
    run_or_print "$PYTHON" -m scripts.strip_checkpoint --dtype "$@"
}

make_data() {
    if ! [ -d "$DATASET_PATH" ]; then
        [ "$DATASET_PATH" = LJSpeech-1.1 ] || [ "${DRY_RUN:-0}" = 1 ] ||
            die "$DATASET_PATH: no such folder; it holds wavs/ and metadata.csv"
        run_or_print bash scripts/download_dataset.sh
    fi
    run_once "$data/vocoder_train.txt" "$PYTHON" -m scripts.datasets.voice_data -o "$data" --recordings "$DATASET_PATH" \
        --held-back "${held_back[@]}"
}

train_vocoder() {
    local vocoder=$OUTPUT_DIR/vocoder/Harmonic_checkpoint_$VOCODER_EPOCHS.pt
    run_once "$vocoder" env MODEL=Harmonic OUTPUT_DIR="$OUTPUT_DIR/vocoder" DATASET_PATH="$data" \
        TRAIN_FILELIST="$data/vocoder_train.txt" VAL_FILELIST="$data/vocoder_val.txt" EPOCHS="$VOCODER_EPOCHS" \
        EPOCHS_PER_CHECKPOINT=5 KEEP_CHECKPOINTS=2 bash scripts/train.sh --resume
    strip float16 "$vocoder" "$VOICES/vocoder-small.pt"
}

train_voice() {
    local size=(--in-fft-n-layers 4 --out-fft-n-layers 4 --in-fft-conv1d-filter-size 384 --out-fft-conv1d-filter-size 384
        --symbols-embedding-dim 192 --in-fft-output-size 192 --out-fft-output-size 192 --mean-mel-bias)
    local base=$OUTPUT_DIR/base/FastPitch_checkpoint_$BASE_EPOCHS.pt
    local voice=$OUTPUT_DIR/lj/FastPitch_checkpoint_$VOICE_EPOCHS.pt
    run_once "$base" env MODEL=FastPitch LEARNED_ALIGNMENT=true ENERGY=true OUTPUT_DIR="$OUTPUT_DIR/base" \
        DATASET_PATH="$data" TRAIN_FILELIST="$data/base_train.txt" VAL_FILELIST="$data/lj_val.txt" \
        INPUT_TYPE=phone SYMBOL_SET=ipa_marked NUM_SPEAKERS=4 AMP=true BS=8 GRAD_ACCUMULATION=1 EPOCHS="$BASE_EPOCHS" \
        LEARNING_RATE=1.4e-2 WARMUP_STEPS=250 GRAD_CLIP=5 EMA=0.99 EPOCHS_PER_CHECKPOINT=1 KEEP_CHECKPOINTS=2 \
        VALIDATION_INTERVAL=1 bash scripts/train.sh --optimizer adam --g2p espeak --g2p-language en-us "${size[@]}" --resume \
        --kl-loss-start-epoch 2 --kl-loss-warmup-epochs 2 --pitch-cache "$OUTPUT_DIR/pitch_cache"
    run_once "$voice" env SPEAKER=lj TRAIN_FILELIST="$data/lj_train.txt" VAL_FILELIST="$data/lj_val.txt" \
        OUTPUT_DIR="$OUTPUT_DIR/lj" AMP=true BS=4 EPOCHS="$VOICE_EPOCHS" LEARNING_RATE=7e-3 WARMUP_STEPS=100 GRAD_CLIP=5 \
        EMA=0.99 EPOCHS_PER_CHECKPOINT=10 KEEP_CHECKPOINTS=2 VALIDATION_INTERVAL=10 KL_LOSS_START_EPOCH=0 \
        KL_LOSS_WARMUP_EPOCHS=1 bash scripts/finetune_voice.sh "$base" "$data" \
        --optimizer adam --pitch-cache "$OUTPUT_DIR/pitch_cache"
    strip bfloat16 "$voice" "$VOICES/lj-small.pt"
}

for stage in "${stages[@]}"; do
    case "$stage" in
        data) make_data ;;
        vocoder) train_vocoder ;;
        voice) train_voice ;;
    esac
done
print_next "to measure the vocoder" bash scripts/evaluate_voice.sh "$VOICES/vocoder-small.pt" "$data/held_back.txt" \
    --dataset-path "$data"
