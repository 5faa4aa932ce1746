#!/usr/bin/env bash
# Fine-tunes a voice on minutes of recordings of a new speaker with transcripts, and evaluates it before and after.
#   bash scripts/finetune_voice.sh my_voice  # from the shipped voice
#   bash scripts/finetune_voice.sh output/FastPitch_checkpoint_1000.pt my_voice  # from another FastPitch
# The dataset is in LJSpeech's layout, or TRAIN_FILELIST and VAL_FILELIST list it; N_VAL clips are set apart to validate and
# evaluate on. Arguments go to train.py. To resume after a stop, run it again.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run finetune_voice "$@"
