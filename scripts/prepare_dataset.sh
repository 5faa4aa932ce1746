#!/usr/bin/env bash
# Splits a corpus in LJSpeech's layout into lists, and writes its mel settings (audio.json), mel-spectrograms and features.
#   DATASET_PATH=my_voice NAME=my_voice N_VAL=20 N_TEST=0 bash scripts/prepare_dataset.sh --resume
# Durations come from TACOTRON2_CHECKPOINT, else DATASET_PATH/TextGrid/*.TextGrid, else DATASET_PATH/durations/*.pt,
# else a downloaded Tacotron 2. Arguments go to extract_mels.py.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run prepare_dataset "$@"
