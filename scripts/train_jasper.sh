#!/usr/bin/env bash
# Trains Jasper as published: scripts/train.sh with MODEL=Jasper; arguments go to train.py.
#   bash scripts/train_jasper.sh --resume
#   MODEL_CONFIG=jasper/configs/jasper10x5dr_speedp-offline_speca.yaml bash scripts/train_jasper.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
MODEL=Jasper run_script train "$@"
