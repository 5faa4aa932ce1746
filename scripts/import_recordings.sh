#!/usr/bin/env bash
# Makes a corpus that every script takes of recordings in any sound format, with transcripts in many layouts.
#   bash scripts/import_recordings.sh recordings my_voice
# Nothing in recordings is changed; run again, it adds what is new. my_voice/import.tsv says what was done and left out.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run_python -m speech_toolkit import "$@"
