#!/usr/bin/env bash
# Transcribes recordings with Jasper: scripts/inference_example.sh with MODEL=Jasper.
#   DATASET=dev-clean PREDICTION_FILE=output/dev_clean.json bash scripts/transcribe.sh
MODEL=Jasper source "$(dirname "${BASH_SOURCE[0]}")/inference_example.sh" "$@"
