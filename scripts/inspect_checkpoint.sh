#!/usr/bin/env bash
# Describes a checkpoint or an exported file: model, layout, architecture, mels, text and training state.
#   bash scripts/inspect_checkpoint.sh g_02500000 --json  # one JSON object
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run_python -m speech_toolkit inspect "$@"
