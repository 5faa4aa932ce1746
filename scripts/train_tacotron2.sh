#!/usr/bin/env bash
# Trains Tacotron 2 as published: scripts/train.sh with MODEL=Tacotron2, whose variables and arguments it takes.
MODEL=Tacotron2 exec bash "$(dirname "${BASH_SOURCE[0]}")/train.sh" "$@"
