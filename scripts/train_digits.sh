#!/usr/bin/env bash
# Trains a small Jasper on spoken digits in minutes, and prints its word error rate; arguments go to train.py.
#   bash scripts/train_digits.sh  # after scripts/download_fsdd.sh
#   DATASET=/data/fsdd EPOCHS=10 bash scripts/train_digits.sh --resume
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run train_digits "$@"
