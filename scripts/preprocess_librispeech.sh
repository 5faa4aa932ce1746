#!/usr/bin/env bash
# Turns LibriSpeech's FLAC files into wav files of 16 kHz, and writes the manifests to train Jasper with.
#   SPEEDS="0.9 1.1" bash scripts/preprocess_librispeech.sh  # with copies for the speedp-offline configurations
#   DATASET_PATH=/data/LibriSpeech SUBSETS="train-clean-100 dev-clean" N_WORKERS=8 bash scripts/preprocess_librispeech.sh
# Run again, it resumes.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
run_script preprocess_librispeech "$@"
