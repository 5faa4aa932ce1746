#!/usr/bin/env bash
# Trains Tacotron 2 as published: scripts/train.sh with MODEL=Tacotron2; arguments go to train.py.
#   bash scripts/train_tacotron2.sh --resume
#   LOAD_MEL_FROM_DISK=false BS=8 bash scripts/train_tacotron2.sh
MODEL=Tacotron2 source "$(dirname "${BASH_SOURCE[0]}")/train.sh" "$@"
