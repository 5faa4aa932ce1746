#!/usr/bin/env bash
# Prints error rates of a Jasper on LibriSpeech's sets or other lists; arguments go to inference.py --jasper CHECKPOINT.
#   MANIFESTS=my_voice/list.txt DATASET_PATH=my_voice bash scripts/evaluate_recognizer.sh --no-trim-silence
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run evaluate_recognizer "$@"
