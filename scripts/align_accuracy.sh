#!/usr/bin/env bash
# Measures the alignment that FastPitch 1.1 learns against true phone boundaries: makes the quickstart's corpus, trains a
# small FastPitch on its wavs and phones alone, and compares. Exit status 1 if the mean error is 20 ms or more.
#   bash scripts/align_accuracy.sh  # everything, into output/align_accuracy (makes .venv at the first call)
#   bash scripts/align_accuracy.sh --epochs 60 -o output/trial
# Arguments go to scripts/demos/align_accuracy.py.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
ensure_venv
# One thread is nearly as fast for so small a network, wastes no time waiting, and gives the same sums on any machine.
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
run_python -m scripts.demos.align_accuracy "$@"
