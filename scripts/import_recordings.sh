#!/usr/bin/env bash
# Makes a corpus that every script takes of recordings as they are: any sound format, transcripts wherever they lie.
#   bash scripts/import_recordings.sh recordings my_voice
#   bash scripts/import_recordings.sh VCTK-Corpus vctk --sampling-rate 24000 --loudness -20
# Clips become mono WAV of 22050 Hz and one loudness, without long silence at their ends. Nothing in recordings is changed;
# run again, it makes what is new. my_voice/import.tsv says what was done, and what was left out and why.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run_python -m scripts.import_recordings "$@"
