#!/usr/bin/env bash
# Puts trained models into ./pretrained_models/<model>: published ones by name, or your own from a URL or path.
#   bash scripts/download_models.sh fastpitch hifigan-finetuned-fastpitch
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run_python -m scripts.download_models "$@"
