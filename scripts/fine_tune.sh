#!/usr/bin/env bash
# The published name of scripts/finetune_vocoder.sh.
#   DATASET_PATH=my_voice NAME=my_voice BATCH_SIZE=4 EPOCHS=7000 bash scripts/fine_tune.sh
#   HIFIGAN=pretrained_models/hifigan/g_02500000 EPOCHS=100 NUM_GPUS=1 GRAD_ACCUMULATION=8 bash scripts/fine_tune.sh
source "$(dirname "${BASH_SOURCE[0]}")/finetune_vocoder.sh" "$@"
