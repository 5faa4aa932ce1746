#!/usr/bin/env bash
# Downloads the Free Spoken Digit Dataset (CC BY-SA 4.0, 16 MB) into ./fsdd; its archive has no published checksum.
#   bash scripts/download_fsdd.sh
#   DATASET_ARCHIVE=/data/free-spoken-digit-dataset-1.0.10.tar.gz bash scripts/download_fsdd.sh  # a copy that you have
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run download_fsdd "$@"
