#!/usr/bin/env bash
# Writes a checkpoint of another implementation in this toolkit's format, recognized by what is in it.
#   bash scripts/convert_checkpoint.sh g_02500000 vocoder.pt                       # with do_02500000 and config.json beside it
#   bash scripts/convert_checkpoint.sh weights.pt voice.pt --config config.json    # weights without their configuration
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run_python -m scripts.checkpoint_tools convert "$@"
