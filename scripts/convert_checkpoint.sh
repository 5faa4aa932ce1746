#!/usr/bin/env bash
# Converts a checkpoint of another implementation to this toolkit's format.
#   bash scripts/convert_checkpoint.sh g_02500000 vocoder.pt  # with do_02500000 and config.json beside it
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run_python -m speech_toolkit convert "$@"
