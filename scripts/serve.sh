#!/usr/bin/env bash
# Serves a voice over HTTP, with the studio on its front page; Ctrl-C stops it. Arguments go to serve.py.
#   bash scripts/serve.sh  # with the newest checkpoint in ./output, else in ./pretrained_models, else the voice in ./voices
#   NAME=my_voice bash scripts/serve.sh  # with the newest in ./output/my_voice
#   FASTPITCH=voice.pt HIFIGAN=vocoder.pt JASPER=jasper.pt bash scripts/serve.sh --port 8090
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run serve "$@"
