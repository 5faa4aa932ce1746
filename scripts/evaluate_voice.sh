#!/usr/bin/env bash
# Evaluates a voice or a vocoder on a list: error rates, distances from recordings, speed, and a page of all sounds.
#   bash scripts/evaluate_voice.sh voice.pt griffin-lim phrases/devset10.tsv
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run evaluate_voice "$@"
