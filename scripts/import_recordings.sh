#!/usr/bin/env bash
# Makes a corpus for the other scripts from recordings in any sound format, with transcripts in many layouts.
#   bash scripts/import_recordings.sh recordings my_voice
# The recordings aren't changed. Run it again to add new ones; my_voice/import.tsv lists what was imported and skipped.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run_python -m speech_toolkit import "$@"
