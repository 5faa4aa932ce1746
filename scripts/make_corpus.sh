#!/usr/bin/env bash
# Makes a corpus by having a server with OpenAI's speech API read texts (lines id|text, or just texts).
#   bash scripts/make_corpus.sh texts.txt -o teacher --from-server http://127.0.0.1:8080 --voice alloy --license Apache-2.0
# Clips that are empty, cut off, or far too fast or slow for their text are reported and left out. Rerun it to resume.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run_python -m scripts.datasets.make_corpus "$@"
