#!/usr/bin/env bash
# Puts one trained model into ./pretrained_models, as scripts/download_models.sh does.
#   bash scripts/download_model.sh fastpitch
#   scripts/download_model.sh hifigan --source /media/stick/hifigan.zip
source "$(dirname "${BASH_SOURCE[0]}")/download_models.sh" "$@"
