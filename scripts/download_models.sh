#!/usr/bin/env bash
# Puts trained models into ./pretrained_models/<model>, where the other scripts look: published ones by name, or those of a
# URL or path that you give; verified, unpacked and opened. An interrupted download resumes.
#   bash scripts/download_models.sh fastpitch hifigan-finetuned-fastpitch
#   bash scripts/download_models.sh hifigan --source /media/stick/hifigan.zip --sha256 0123...
#   FASTPITCH_SOURCE=voice.pt HIFIGAN_SOURCE=g_02500000 bash scripts/download_models.sh fastpitch hifigan
# Published are fastpitch (1.1), fastpitch-1.0, fastpitch-cfg, tacotron2, hifigan, hifigan-finetuned-fastpitch, waveglow
# and jasper, without checksums, so that they are verified by opening them.
# <MODEL>_SOURCE and <MODEL>_SHA256 of each model stand for --source and --sha256. Arguments go to
# scripts/download_models.py.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
run_python -m scripts.download_models "$@"
