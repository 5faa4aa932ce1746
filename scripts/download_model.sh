#!/usr/bin/env bash
# Puts one trained model into ./pretrained_models, as scripts/download_models.sh does.
source "$(dirname "${BASH_SOURCE[0]}")/download_models.sh" "$@"
