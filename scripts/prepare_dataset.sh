#!/usr/bin/env bash
# Splits a corpus in LJSpeech's layout into lists, writes the settings of its mel-spectrograms (audio.json, by which every
# model is then trained), and extracts the mel-spectrograms and, where there are durations, the pitch of FastPitch.
#   bash scripts/prepare_dataset.sh
#   DATASET_PATH=my_voice NAME=my_voice N_VAL=20 N_TEST=0 bash scripts/prepare_dataset.sh --resume
#   DATASET_PATH=my_voice NAME=my_voice N_VAL=20 N_TEST=0 FEATURES=false bash scripts/prepare_dataset.sh  # lists
#   FEATURES=mels bash scripts/prepare_dataset.sh  # mel-spectrograms alone, also where there are durations
#   TACOTRON2_CHECKPOINT=tacotron2.pt bash scripts/prepare_dataset.sh
# Arguments go to extract_mels.py. Durations come from the Tacotron 2 in TACOTRON2_CHECKPOINT if it is given, else from
# DATASET_PATH/TextGrid/*.TextGrid if there are any, else from DATASET_PATH/durations/*.pt made elsewhere, else from the
# Tacotron 2 that scripts/download_models.sh has downloaded. Without durations there are the mel-spectrograms, which
# Tacotron 2 learns from. A vocoder needs none of that: without metadata.csv, and with FEATURES=false, audio.json and the
# lists are all that is made.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
run_script prepare_dataset "$@"
