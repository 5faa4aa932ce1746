#!/usr/bin/env bash
# A voice of two speakers from recordings and transcripts alone: corpus, training, speech, and the pitch of each.
#   bash scripts/two_speakers.sh  # everything, into output/two_speakers (makes .venv at the first call)
#   bash scripts/two_speakers.sh --n-sentences 40 -o output/trial
# Arguments go to scripts/demos/two_speakers.py.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
ensure_venv
run_python -m scripts.demos.two_speakers "$@"
