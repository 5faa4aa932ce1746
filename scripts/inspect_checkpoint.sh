#!/usr/bin/env bash
# Says what a checkpoint or exported file is: model, layout, architecture, mels, text, training state, and what fits it.
#   bash scripts/inspect_checkpoint.sh g_02500000 --json            # one JSON object
#   bash scripts/inspect_checkpoint.sh voice.pt --beside vocoders   # what of that folder fits it
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run_python -m scripts.checkpoint_tools inspect "$@"
