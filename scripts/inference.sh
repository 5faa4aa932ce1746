#!/usr/bin/env bash
# The published name of scripts/transcribe.sh.
source "$(dirname "${BASH_SOURCE[0]}")/transcribe.sh" "$@"
