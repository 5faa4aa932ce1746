#!/usr/bin/env bash
# Says what a checkpoint or exported file is: model, layout, architecture, mels, text, training state, and what fits it.
#   bash scripts/inspect_checkpoint.sh output/FastPitch_checkpoint_1500.pt
#   bash scripts/inspect_checkpoint.sh g_02500000 --json            # one JSON object
#   bash scripts/inspect_checkpoint.sh voice.pt --beside vocoders   # what of that folder fits it
# FILE is a checkpoint of ours or a published one, or what export_model.sh has written. Nothing in it is run.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
run_python -m scripts.inspect_checkpoint "$@"
