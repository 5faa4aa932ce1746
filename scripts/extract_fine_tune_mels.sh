#!/usr/bin/env bash
# Makes a corpus's mels with a trained voice, for scripts/finetune_vocoder.sh; arguments go to extract_mels.py.
#   FASTPITCH=voice.pt DATASET_PATH=my_voice NAME=my_voice bash scripts/extract_fine_tune_mels.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run extract_fine_tune_mels "$@"
