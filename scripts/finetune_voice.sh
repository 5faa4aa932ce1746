#!/usr/bin/env bash
# Fine-tunes a FastPitch to a new voice, from recordings and transcripts alone; further arguments go to train.py.
#   bash scripts/finetune_voice.sh output/FastPitch_checkpoint_1000.pt my_voice
#   SPEAKER=anna EPOCHS=400 NUM_GPUS=0 BS=8 bash scripts/finetune_voice.sh fastpitch.pt my_voice --symbol-set english_expanded
# The checkpoint is ours, its safetensors, or a published FastPitch 1.0 or 1.1; the dataset is a folder of LJSpeech's
# layout (wavs/ and metadata.csv), or a folder with TRAIN_FILELIST and VAL_FILELIST, lists of wavs/a.wav|text[|speaker].
# Symbols and speakers keep their embeddings by name; those of new ones start as the mean of the others.
# Transcripts are text, which the voice reads as it always does: one of phones makes phones of them. Lists of phones need
# --transcript-type phones. Symbols that it lacks are dropped and counted.
# Paths are relative to the project's folder. Run again after a stop, it resumes. Other variables of scripts/train.sh apply.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
run_script finetune_voice "$@"
