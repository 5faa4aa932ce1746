#!/usr/bin/env bash
# Trains a voice and its vocoder as the shipped ones are trained, on a corpus such as scripts/make_corpus.sh makes.
#   DATASET_PATH=teacher NUM_GPUS=0 bash scripts/train_voices.sh  # makes output/voices/voice.pt and vocoder.pt
# Speakers are the folders of a corpus with speakers.txt, or the last column of TRAIN_FILELIST. Run again, it resumes.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run train_voices "$@"
