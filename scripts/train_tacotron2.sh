#!/usr/bin/env bash
# Trains Tacotron 2 as published: scripts/train.sh with MODEL=Tacotron2.
MODEL=Tacotron2 source "$(dirname "${BASH_SOURCE[0]}")/train.sh" "$@"
