#!/usr/bin/env bash
# Prints Jasper's error rates on LibriSpeech's subsets or other lists; arguments go to inference.py --jasper CHECKPOINT.
#   MANIFESTS=my_voice/list.txt DATASET_PATH=my_voice bash scripts/evaluate_recognizer.sh --no-trim-silence
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run evaluate_recognizer "$@"
