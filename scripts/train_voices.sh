#!/usr/bin/env bash
# Trains a voice and its vocoder as the shipped ones are trained, on a corpus such as scripts/make_corpus.sh makes.
#   DATASET_PATH=teacher NUM_GPUS=0 bash scripts/train_voices.sh  # makes output/voices/voice.pt and vocoder.pt
# Speakers are the folders of a corpus with speakers.txt, or the last column of TRAIN_FILELIST. Run again, it resumes.
# FROM_CHECKPOINT and FROM_VOCODER are the models to begin with, by default the shipped ones, and OUTPUT_DIR is the folder
# for the results. VOICE_EPOCHS, ADVERSARIAL_EPOCHS (against discriminators), VOCODER_EPOCHS and SHARP_EPOCHS (the vocoder
# against discriminators) are 14, 25, 4 and 7. Full-size discriminators need NUM_GPUS=1 or more.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && answer_help "$@"
use_python
out=${OUTPUT_DIR:-output/voices}
export NAME=${NAME:-voices} FILELISTS=${FILELISTS:-$out/filelists} N_TEST=${N_TEST:-0} FEATURES=false LEARNED_ALIGNMENT=true
# What ends this script ends the step that runs, too.
for number in 1 2 15; do trap "kill \$! || true; wait \$! || true; exit $((128 + number))" "$number"; done

# step SCRIPT ARGUMENTS...: runs another script.
step() {
    bash "$ROOT/scripts/$1.sh" "${@:2}" &
    wait "$!"
}

# train CHECKPOINT INITIAL OPTIONS...: trains up to a checkpoint, unless it is there.
train() {
    local name=${1##*/} epochs=${1##*_}
    [ "$DRY_RUN" = 1 ] || ! [ -f "$1" ] || { echo "$1 is there" && return; }
    MODEL=${name%%_*} BS=8 OUTPUT_DIR=${1%/*} step train --from-checkpoint "$2" --epochs "${epochs%.pt}" \
        --epochs-per-checkpoint 1 --keep-checkpoints 2 --amp --ema-decay 0.995 --grad-clip-thresh 5 "${@:3}" --resume
}

[ -n "${TRAIN_FILELIST:-}" ] || step prepare_dataset
voice=$out/voice/FastPitch_checkpoint_${VOICE_EPOCHS:-14}.pt
tuned=$out/adversarial/FastPitch_checkpoint_${ADVERSARIAL_EPOCHS:-25}.pt
vocoder=$out/vocoder/Harmonic_checkpoint_${VOCODER_EPOCHS:-4}.pt
sharp=$out/sharp/Harmonic_checkpoint_${SHARP_EPOCHS:-7}.pt
options=(--n-speakers auto --optimizer adam --kl-loss-start-epoch 0 --kl-loss-warmup-epochs 1)
train "$voice" "${FROM_CHECKPOINT:-$ROOT/voices/en-small.pt}" "${options[@]}" --learning-rate 1.6e-2 --warmup-steps 250
train "$tuned" "$voice" "${options[@]}" --learning-rate 4e-3 --warmup-steps 100 --adversarial --adversarial-loss-scale 0.1 \
    --feature-loss-scale 1.0
FASTPITCH=$tuned OUTPUT_DIR=$out/mels step extract_fine_tune_mels
train "$vocoder" "${FROM_VOCODER:-$ROOT/voices/vocoder-small.pt}" --learning-rate 4e-4 --input-mels-dir "$out/mels"
[ "${NUM_GPUS:-0}" != 0 ] || narrow=(--mpd-channels 8 32 64 128 128 --msd-channels 16 16 32 64 128 128 128)
train "$sharp" "$vocoder" --learning-rate 2e-4 --input-mels-dir "$out/mels" --adversarial "${narrow[@]}"
[ "$DRY_RUN" = 1 ] || rm -f "$out"/{voice,vocoder}.pt # of an earlier run
DTYPE=bfloat16 step strip_checkpoint "$tuned" "$out/voice.pt"
DTYPE=float16 step strip_checkpoint "$sharp" "$out/vocoder.pt"
