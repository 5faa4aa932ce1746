#!/usr/bin/env bash
# Trains Jasper as published: scripts/train.sh with MODEL=Jasper; arguments go to train.py.
#   bash scripts/train_jasper.sh --resume
#   MODEL_CONFIG=jasper/configs/jasper10x5dr_speedp-offline_speca.yaml bash scripts/train_jasper.sh
MODEL=Jasper source "$(dirname "${BASH_SOURCE[0]}")/train.sh" "$@"
