#!/usr/bin/env bash
# A first voice in minutes: makes a corpus, trains a small FastPitch on it, speaks phrases/devset10.tsv and measures it.
#   bash scripts/quickstart.sh  # writes everything to output/quickstart; to resume after a stop, run it again
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run_python -m scripts.demos.quickstart "$@"
