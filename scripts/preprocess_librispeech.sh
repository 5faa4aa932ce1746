#!/usr/bin/env bash
# Converts LibriSpeech to wav files of 16 kHz and manifests, to train Jasper on. To resume, run it again.
#   SPEEDS="0.9 1.1" bash scripts/preprocess_librispeech.sh  # with copies for the speedp-offline configurations
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run preprocess_librispeech "$@"
