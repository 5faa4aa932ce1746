#!/usr/bin/env bash
# The published name of scripts/evaluate_recognizer.sh.
#   JASPER=output/Jasper_checkpoint_440.pt DATASETS="dev-clean" AMP=true bash scripts/evaluation.sh
#   MANIFESTS=my_voice/list.txt DATASET_PATH=my_voice bash scripts/evaluation.sh --no-trim-silence
source "$(dirname "${BASH_SOURCE[0]}")/evaluate_recognizer.sh" "$@"
