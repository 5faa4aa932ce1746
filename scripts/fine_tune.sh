#!/usr/bin/env bash
# Fine-tunes a trained HiFi-GAN on the mel-spectrograms of a generator, as published; arguments go to train.py.
#   bash scripts/fine_tune.sh  # the newest checkpoint in ./output, on the mels of scripts/extract_fine_tune_mels.sh
#   DATASET_PATH=my_voice NAME=my_voice BATCH_SIZE=4 EPOCHS=7000 bash scripts/fine_tune.sh
#   HIFIGAN=pretrained_models/hifigan/g_02500000 EPOCHS=100 NUM_GPUS=1 GRAD_ACCUMULATION=8 bash scripts/fine_tune.sh
# The variables of scripts/train.sh apply. EPOCHS counts from the beginning of the vocoder's first training.
# Run again after a stop, it resumes.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source scripts/lib/originals.sh
take_published fine_tune "$@"
set -- "${arguments[@]}"

: "${HIFIGAN:=}" # checkpoint to continue; empty: the newest in ./output
: "${NAME:=ljs}" # first part of the lists' names
: "${FILELISTS:=filelists}" # folder of the lists
: "${INPUT_MELS_DIR:=data/mels-$NAME}" # folder with the generator's mel-spectrograms
: "${FINE_TUNE_LR_FACTOR:=3}" # factor of the learning rate
: "${OUTPUT_DIR:=./output/fine_tune}" # folder for the results
: "${EPOCHS:=10000}" # 3500 more than the vocoder was trained for
export OUTPUT_DIR EPOCHS NAME FILELISTS
need_names NAME

[ -d "$INPUT_MELS_DIR" ] || [ "${DRY_RUN:-0}" = 1 ] ||
    die "$INPUT_MELS_DIR: no such folder; scripts/extract_fine_tune_mels.sh makes it, or set INPUT_MELS_DIR"
if compgen -G "$OUTPUT_DIR/HiFi-GAN_checkpoint_*.pt" >/dev/null; then
    from=(--resume)
else
    find_newest HIFIGAN HiFi-GAN scripts/train_lj22khz.sh
    from=(--checkpoint-path "$HIFIGAN")
fi
MODEL=HiFi-GAN exec bash scripts/train.sh "${from[@]}" --fine-tuning --input-mels-dir "$INPUT_MELS_DIR" \
    --fine-tune-lr-factor "$FINE_TUNE_LR_FACTOR" "$@"
