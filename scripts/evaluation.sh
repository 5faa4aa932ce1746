#!/usr/bin/env bash
# The published name of scripts/evaluate_recognizer.sh.
source "$(dirname "${BASH_SOURCE[0]}")/evaluate_recognizer.sh" "$@"
