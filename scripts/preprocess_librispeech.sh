#!/usr/bin/env bash
# Makes wav files of 16 kHz and manifests of LibriSpeech, to train Jasper with; run again, it resumes.
#   SPEEDS="0.9 1.1" bash scripts/preprocess_librispeech.sh  # with copies for the speedp-offline configurations
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run preprocess_librispeech "$@"
