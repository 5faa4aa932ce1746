#!/usr/bin/env bash
# Fine-tunes a trained HiFi-GAN on the mel-spectrograms of a generator, as published; arguments go to train.py.
#   DATASET_PATH=my_voice NAME=my_voice BATCH_SIZE=4 EPOCHS=7000 bash scripts/finetune_vocoder.sh
# EPOCHS includes those of the vocoder's first training. To resume after a stop, run it again.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run finetune_vocoder "$@"
