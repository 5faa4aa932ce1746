#!/usr/bin/env bash
# Downloads LibriSpeech (CC BY 4.0; about 60 GB) into ./LibriSpeech; an interrupted download resumes.
#   SUBSETS="train-clean-100 dev-clean" bash scripts/download_librispeech.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run download_librispeech "$@"
