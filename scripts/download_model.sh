#!/usr/bin/env bash
# The same as scripts/download_models.sh, for one model.
#   bash scripts/download_model.sh fastpitch
#   scripts/download_model.sh hifigan --source /media/stick/hifigan.zip
# Arguments go to scripts/download_models.py.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
exec bash scripts/download_models.sh "$@"
