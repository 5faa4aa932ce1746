#!/usr/bin/env bash
# Serves a voice over HTTP, with the studio on its front page; Ctrl-C stops it. Arguments go to serve.py.
#   NAME=my_voice bash scripts/serve.sh  # with the newest checkpoint in ./output/my_voice; else the voice in ./voices
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run serve "$@"
