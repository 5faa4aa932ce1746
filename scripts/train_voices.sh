#!/usr/bin/env bash
# Trains the small voice and vocoder that the project ships, from recordings of one speaker and embedded speakers.
#   DATASET_PATH=clips OUTPUT_DIR=output/trial NUM_GPUS=0 bash scripts/train_voices.sh
#   STAGES="vocoder" DRY_RUN=1 bash scripts/train_voices.sh
# Each stage is skipped when it is finished and resumed when it was stopped; the result is lj-small.pt and
# vocoder-small.pt in VOICES. On a CPU one core does: about half an hour for the vocoder, two for the voice.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
run_script train_voices "$@"
