#!/usr/bin/env bash
# Fine-tunes a voice to a new one, from minutes of recordings with transcripts, and evaluates it before and after.
#   bash scripts/finetune_voice.sh my_voice  # from the shipped voice
#   bash scripts/finetune_voice.sh output/FastPitch_checkpoint_1000.pt my_voice  # from another FastPitch
#   SPEAKER=anna EPOCHS=400 NUM_GPUS=0 BS=8 bash scripts/finetune_voice.sh fastpitch.pt my_voice --symbol-set english_expanded
# The dataset is in LJSpeech's layout, or TRAIN_FILELIST and VAL_FILELIST list it. Sixteen clips are enough; some are set
# apart (N_VAL) to validate and evaluate on. Arguments go to train.py. Run again after a stop, it resumes.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run finetune_voice "$@"
