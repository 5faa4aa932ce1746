#!/usr/bin/env bash
# Speaks ten sentences with a trained voice, or transcribes recordings with Jasper; arguments go to inference.py.
#   FASTPITCH=voice.pt HIFIGAN=vocoder.pt AMP=true bash scripts/inference_example.sh --pace 0.9
# The default vocoder is the newest in ./output, else a downloaded one, else the one in ./voices.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run inference_example "$@"
