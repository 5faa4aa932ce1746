#!/usr/bin/env bash
# Trains the small voice and vocoder that the project ships, from recordings of one speaker and embedded speakers.
#   bash scripts/train_voices.sh  # downloads LJSpeech where DATASET_PATH is not there
#   DATASET_PATH=clips OUTPUT_DIR=output/trial NUM_GPUS=0 bash scripts/train_voices.sh
#   STAGES="vocoder" DRY_RUN=1 bash scripts/train_voices.sh
# The vocoder learns from all of them; the voice begins with the embedded speaker and is fine-tuned to the recordings.
# Each stage is skipped when it is finished and resumed when it was stopped; the result is lj-small.pt and
# vocoder-small.pt in VOICES. Clips of HELD_BACK are in no training: measure with them (docs/BENCHMARKS.md).
# On a CPU the discriminators are narrow ones; OMP_NUM_THREADS=1 there, if other programs run.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

: "${DATASET_PATH:=LJSpeech-1.1}" # folder of the recordings, in LJSpeech's layout
: "${HELD_BACK:=$(printf 'LJ001-%04d ' {73..80})}" # its clips that are not trained on
: "${OUTPUT_DIR:=output/voices}" # folder for corpora, lists and checkpoints
: "${VOICES:=voices}" # folder for the two files
: "${STAGES:=data vocoder voice}" # what to do, in this order
: "${MEL_EPOCHS:=10}" # epochs of the vocoder without discriminators
: "${VOCODER_EPOCHS:=80}" # epochs of the vocoder in all
: "${BASE_EPOCHS:=8}" # epochs of the voice on the embedded speaker
: "${VOICE_EPOCHS:=200}" # epochs of its fine-tuning
: "${NUM_GPUS:=auto}" # `auto`: the GPU if there is one; 0: the CPU
find_ljspeech

need_whole_numbers 1 999999 MEL_EPOCHS VOCODER_EPOCHS BASE_EPOCHS VOICE_EPOCHS
read_words HELD_BACK
held_back=("${words[@]}")
read_words STAGES
stages=("${words[@]}")
for stage in "${stages[@]}"; do
    [[ " data vocoder voice " = *" $stage "* ]] || wrong_option "STAGES=$(shown "$STAGES"): expected of data, vocoder and voice"
done
ensure_venv
MODEL=HiFi-GAN BS=8 resolve_training_gpus 1
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

# strip CHECKPOINT FILE: writes the weights that infer into FILE, anew.
strip() {
    [ "${DRY_RUN:-0}" = 1 ] || rm -f "$2"
    run_or_print "$PYTHON" -m scripts.strip_checkpoint --dtype bfloat16 "$1" "$2"
}

make_data() {
    local corpus=("$PYTHON" -m scripts.datasets.make_corpus --n-validation 10)
    if ! [ -d "$DATASET_PATH" ]; then
        [ "$DATASET_PATH" = LJSpeech-1.1 ] || [ "${DRY_RUN:-0}" = 1 ] ||
            die "$DATASET_PATH: no such folder; it holds wavs/ and metadata.csv"
        run_or_print bash scripts/download_dataset.sh
    fi
    run_once "$OUTPUT_DIR/embedded/metadata.csv" "${corpus[@]}" -o "$OUTPUT_DIR/embedded" \
        --speakers p60=60 p75=75 p90=90 p99=99
    run_once "$OUTPUT_DIR/embedded_gb/metadata.csv" "${corpus[@]}" -o "$OUTPUT_DIR/embedded_gb" --voice en-gb \
        --speakers gb65=65 gb90=90
    run_once "$data/vocoder_train.txt" "$PYTHON" -m scripts.datasets.voice_lists -o "$data" --recordings "$DATASET_PATH" \
        --embedded us="$OUTPUT_DIR/embedded" gb="$OUTPUT_DIR/embedded_gb" --held-back "${held_back[@]}"
}

train_vocoder() {
    local narrow=() train
    # The published discriminators take nine tenths of an update on a CPU.
    [ "$NUM_GPUS" -gt 0 ] || narrow=(--mpd-channels 8 32 64 128 128 --msd-channels 16 16 32 64 64 64 64
        --msd-groups 1 1 1 1 1 1 1)
    train=(env MODEL=HiFi-GAN OUTPUT_DIR="$OUTPUT_DIR/vocoder" DATASET_PATH="$data" AMP=true BS=8 GRAD_ACCUMULATION=1
        TRAIN_FILELIST="$data/vocoder_train.txt" VAL_FILELIST="$data/vocoder_val.txt"
        LEARNING_RATE=4e-4 LR_DECAY=0.97 EMA=0.999 EPOCHS_PER_CHECKPOINT=2 KEEP_CHECKPOINTS=2 VALIDATION_INTERVAL=4)
    run_once "$OUTPUT_DIR/vocoder/HiFi-GAN_checkpoint_$MEL_EPOCHS.pt" "${train[@]}" EPOCHS="$MEL_EPOCHS" \
        bash scripts/train.sh --keep-milestones "$MEL_EPOCHS" --preset v2 "${narrow[@]}" --resume --mel-loss-only
    run_once "$OUTPUT_DIR/vocoder/HiFi-GAN_checkpoint_$VOCODER_EPOCHS.pt" "${train[@]}" EPOCHS="$VOCODER_EPOCHS" \
        bash scripts/train.sh --keep-milestones "$MEL_EPOCHS" --preset v2 "${narrow[@]}" --resume
    strip "$OUTPUT_DIR/vocoder/HiFi-GAN_checkpoint_$VOCODER_EPOCHS.pt" "$VOICES/vocoder-small.pt"
}

train_voice() {
    local size=(--in-fft-n-layers 4 --out-fft-n-layers 4 --in-fft-conv1d-filter-size 384 --out-fft-conv1d-filter-size 384
        --symbols-embedding-dim 192 --in-fft-output-size 192 --out-fft-output-size 192 --mean-mel-bias)
    local base=$OUTPUT_DIR/base/FastPitch_checkpoint_$BASE_EPOCHS.pt
    local voice=$OUTPUT_DIR/lj/FastPitch_checkpoint_$VOICE_EPOCHS.pt
    run_once "$base" env MODEL=FastPitch LEARNED_ALIGNMENT=true OUTPUT_DIR="$OUTPUT_DIR/base" \
        DATASET_PATH="$OUTPUT_DIR/embedded" TRAIN_FILELIST="$data/base_train.txt" VAL_FILELIST="$data/base_val.txt" \
        INPUT_TYPE=phone SYMBOL_SET=ipa_marked NUM_SPEAKERS=1 AMP=true BS=8 GRAD_ACCUMULATION=1 EPOCHS="$BASE_EPOCHS" \
        LEARNING_RATE=1.4e-2 WARMUP_STEPS=250 GRAD_CLIP=5 EMA=0.98 EPOCHS_PER_CHECKPOINT=2 KEEP_CHECKPOINTS=2 \
        VALIDATION_INTERVAL=4 bash scripts/train.sh --optimizer adam --g2p espeak --g2p-language en-us "${size[@]}" --resume \
        --kl-loss-start-epoch 5 --kl-loss-warmup-epochs 3 --pitch-cache "$OUTPUT_DIR/pitch_cache"
    run_once "$voice" env SPEAKER=lj TRAIN_FILELIST="$data/lj_train.txt" VAL_FILELIST="$data/lj_val.txt" \
        OUTPUT_DIR="$OUTPUT_DIR/lj" AMP=true BS=4 EPOCHS="$VOICE_EPOCHS" LEARNING_RATE=1.4e-2 WARMUP_STEPS=100 GRAD_CLIP=5 \
        EMA=0.99 EPOCHS_PER_CHECKPOINT=10 KEEP_CHECKPOINTS=2 VALIDATION_INTERVAL=1000 KL_LOSS_START_EPOCH=0 \
        KL_LOSS_WARMUP_EPOCHS=1 bash scripts/finetune_voice.sh "$base" "$DATASET_PATH" \
        --optimizer adam --pitch-cache "$OUTPUT_DIR/pitch_cache"
    strip "$voice" "$VOICES/lj-small.pt"
}

for stage in "${stages[@]}"; do
    case "$stage" in
        data) make_data ;;
        vocoder) train_vocoder ;;
        voice) train_voice ;;
    esac
done
print_next "to measure the vocoder" bash scripts/evaluate_voice.sh "$VOICES/vocoder-small.pt" "$data/held_back.txt" \
    --dataset-path "$DATASET_PATH"
