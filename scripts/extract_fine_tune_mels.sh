#!/usr/bin/env bash
# Makes a generator's mels of a corpus, to fine-tune HiFi-GAN on; arguments go to extract_mels.py.
#   bash scripts/extract_fine_tune_mels.sh  # with the newest FastPitch in ./output, else in ./pretrained_models
#   FASTPITCH=voice.pt DATASET_PATH=my_voice NAME=my_voice bash scripts/extract_fine_tune_mels.sh
# The lists are those of scripts/prepare_dataset.sh that FastPitch is trained with: recordings and texts for a learned
# alignment, which finds the durations, else features. TRAIN_FILELIST and VAL_FILELIST name others. Started again, it
# keeps what an earlier run has made. Next: scripts/fine_tune.sh.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
run_script extract_fine_tune_mels "$@"
