#!/usr/bin/env bash
# Fine-tunes a FastPitch to a new voice, from recordings and transcripts alone; further arguments go to train.py.
#   bash scripts/finetune_voice.sh output/FastPitch_checkpoint_1000.pt my_voice
#   SPEAKER=anna EPOCHS=400 NUM_GPUS=0 BS=8 bash scripts/finetune_voice.sh fastpitch.pt my_voice --symbol-set english_expanded
# The dataset is in LJSpeech's layout, or TRAIN_FILELIST and VAL_FILELIST list it. Run again after a stop, it resumes.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
run_script finetune_voice "$@"
