#!/usr/bin/env bash
# Puts trained models into ./pretrained_models/<model>: published ones by name, or those of a URL or path that you give.
#   bash scripts/download_models.sh fastpitch hifigan-finetuned-fastpitch
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run_python -m scripts.download_models "$@"
