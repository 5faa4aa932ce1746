#!/usr/bin/env bash
# Makes a generator's mels of a corpus, to fine-tune HiFi-GAN on (scripts/finetune_vocoder.sh); arguments go to extract_mels.py.
#   bash scripts/extract_fine_tune_mels.sh  # with the newest FastPitch in ./output, else in ./pretrained_models
#   FASTPITCH=voice.pt DATASET_PATH=my_voice NAME=my_voice bash scripts/extract_fine_tune_mels.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run extract_fine_tune_mels "$@"
