#!/usr/bin/env bash
# A first voice in minutes: makes a corpus, trains a small FastPitch on it, speaks phrases/devset10.tsv and measures.
#   bash scripts/quickstart.sh  # everything, into output/quickstart (makes .venv at the first call)
#   bash scripts/quickstart.sh --hifigan vocoder.pt  # speaks through that vocoder
# Run again after a stop (Ctrl-C), it resumes.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run_ready -m scripts.demos.quickstart "$@"
