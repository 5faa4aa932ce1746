#!/usr/bin/env bash
# Extracts mel-spectrograms, durations and pitch of a corpus in LJSpeech's layout and writes the lists to train with.
#   bash scripts/prepare_dataset.sh
#   DATASET_PATH=my_voice NAME=my_voice N_VAL=20 N_TEST=0 bash scripts/prepare_dataset.sh --resume
# Arguments go to extract_mels.py. Durations come from DATASET_PATH/TextGrid/*.TextGrid if there are any, else from the
# Tacotron 2 in TACOTRON2_CHECKPOINT, else from DATASET_PATH/durations/*.pt made elsewhere.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"

: "${DATASET_PATH:=LJSpeech-1.1}"
: "${NAME:=ljs}" # first part of the lists' names
: "${FILELISTS:=filelists}"
: "${N_VAL:=100}" # clips set aside where the lists are not there yet, and no *_IDS file says which
: "${N_TEST:=500}"
: "${TRAIN_IDS:=}" # files with one clip's name on each line
: "${VAL_IDS:=}"
: "${TEST_IDS:=}"
: "${TACOTRON2_CHECKPOINT:=}"
: "${CUDA:=false}"

[ -d "$DATASET_PATH" ] || die "$DATASET_PATH: no such folder; run scripts/download_dataset.sh, or set DATASET_PATH"

options=(--extract-mels --extract-pitch-char)
if compgen -G "$DATASET_PATH/TextGrid/*.TextGrid" >/dev/null; then
    options+=(--extract-durs-from-textgrids)
    next="INPUT_TYPE=phone SYMBOL_SET=<arpabet or ipa, as in the TextGrids> "
elif [ -n "$TACOTRON2_CHECKPOINT" ]; then
    options+=(--extract-durations --tacotron2-checkpoint "$TACOTRON2_CHECKPOINT")
elif ! compgen -G "$DATASET_PATH/durations/*.pt" >/dev/null; then
    die "no durations: put TextGrids into $DATASET_PATH/TextGrid, or set TACOTRON2_CHECKPOINT to a Tacotron 2"
fi
[ "$CUDA" != true ] || options+=(--cuda)

run() {
    if [ "${DRY_RUN:-0}" = 1 ]; then
        printf '%q ' "$@"
        echo
    else
        "$@"
    fi
}
if [ "${DRY_RUN:-0}" = 1 ]; then use_python; else ensure_venv; fi

if [ ! -f "$FILELISTS/${NAME}_audio_text_train_filelist.txt" ]; then
    run "$PYTHON" -m scripts.make_filelists --dataset-path "$DATASET_PATH" --output "$FILELISTS" --name "$NAME" \
        --n-val "$N_VAL" --n-test "$N_TEST" ${TRAIN_IDS:+--train-ids "$TRAIN_IDS"} \
        ${VAL_IDS:+--val-ids "$VAL_IDS"} ${TEST_IDS:+--test-ids "$TEST_IDS"}
fi
recordings=() lists=()
for split in train val test; do # the first list's pitch statistics normalise all
    if [ -f "$FILELISTS/${NAME}_audio_text_${split}_filelist.txt" ] || [ "${DRY_RUN:-0}" = 1 ]; then
        recordings+=("$FILELISTS/${NAME}_audio_text_${split}_filelist.txt")
        lists+=("$FILELISTS/${NAME}_mel_dur_pitch_text_${split}_filelist.txt")
    fi
done
run "$PYTHON" extract_mels.py --dataset-path "$DATASET_PATH" --wav-text-filelist "${recordings[@]}" \
    --output-meta-file "${lists[@]}" "${options[@]}" "$@"
echo "next: ${next:-}DATASET_PATH=$DATASET_PATH TRAIN_FILELIST=${lists[0]} VAL_FILELIST=${lists[1]:-${lists[0]}}" \
    "bash scripts/train.sh"
