#!/usr/bin/env bash
# The published name of scripts/finetune_vocoder.sh.
source "$(dirname "${BASH_SOURCE[0]}")/finetune_vocoder.sh" "$@"
