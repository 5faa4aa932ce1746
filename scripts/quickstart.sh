#!/usr/bin/env bash
# A first voice in minutes: makes a corpus, trains a small FastPitch on it, speaks phrases/devset10.tsv and measures.
#   bash scripts/quickstart.sh  # everything, into output/quickstart; run again after a stop, it resumes
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run_python -m scripts.demos.quickstart "$@"
