#!/usr/bin/env bash
# The published name of scripts/transcribe.sh.
#   JASPER=output/Jasper_checkpoint_440.pt bash scripts/inference.sh --pad-leading 16
#   DATASET=dev-clean PREDICTION_FILE=output/dev_clean.json bash scripts/inference.sh
source "$(dirname "${BASH_SOURCE[0]}")/transcribe.sh" "$@"
