#!/usr/bin/env bash
# Trains the small voice and vocoder that the project ships, from recordings of one speaker and embedded speakers.
#   DATASET_PATH=clips OUTPUT_DIR=output/trial NUM_GPUS=0 bash scripts/train_voices.sh
#   STAGES="vocoder" DRY_RUN=1 bash scripts/train_voices.sh
# Run again after a stop, it resumes.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run train_voices "$@"
