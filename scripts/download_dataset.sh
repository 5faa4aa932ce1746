#!/usr/bin/env bash
# Downloads LJSpeech-1.1 (public domain, 2.6 GB) into ./LJSpeech-1.1; an interrupted download resumes.
#   DATASET_ARCHIVE=/data/LJSpeech-1.1.tar.bz2 bash scripts/download_dataset.sh  # from a copy that you have
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run download_dataset "$@"
