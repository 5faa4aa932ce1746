#!/usr/bin/env bash
# Puts trained models into ./pretrained_models/<model>, from a URL or path that you give: verified, unpacked and opened.
#   bash scripts/download_models.sh hifigan --source /media/stick/hifigan.zip --sha256 0123...
#   FASTPITCH_SOURCE=voice.pt HIFIGAN_SOURCE=g_02500000 bash scripts/download_models.sh fastpitch hifigan
# No address of models is named here: their owners say where they are. A checksum in <source>.sha256 is verified too.
# <MODEL>_SOURCE and <MODEL>_SHA256 of each model stand for --source and --sha256. Arguments go to
# scripts/download_models.py.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
run_python -m scripts.download_models "$@"
