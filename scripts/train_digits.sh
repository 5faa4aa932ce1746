#!/usr/bin/env bash
# Trains a small Jasper on the Free Spoken Digit Dataset, in minutes on two CPU cores, and prints its word error rate.
#   bash scripts/train_digits.sh  # after scripts/download_fsdd.sh
#   DATASET=/data/fsdd EPOCHS=10 bash scripts/train_digits.sh --resume
# Arguments go to train.py --model Jasper.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
run_script train_digits "$@"
