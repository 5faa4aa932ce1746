#!/usr/bin/env bash
# Downloads the Free Spoken Digit Dataset (CC BY-SA 4.0, 16 MB) into ./fsdd: six speakers, ten digits, fifty takes.
#   bash scripts/download_fsdd.sh
#   DATASET_ARCHIVE=/data/free-spoken-digit-dataset-1.0.10.tar.gz bash scripts/download_fsdd.sh  # a copy that you have
# Each of the 3,000 recordings is checked to be there and of 8 kHz. GitHub makes the archive on demand and publishes no
# checksum of it; give one that you know as DATASET_SHA256. Where the server can, an interrupted download resumes. The
# folder is complete or absent, so what is there already is not downloaded again.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

: "${DATASET_ARCHIVE:=https://github.com/Jakobovski/free-spoken-digit-dataset/archive/refs/tags/v1.0.10.tar.gz}" # URL or path
: "${DATASET_SHA256:=}" # checksum of the archive; empty: not verified
: "${DATASET:=fsdd}" # folder for the dataset

next=(bash scripts/train_digits.sh)
[ "$DATASET" = fsdd ] || next=("DATASET=$DATASET" "${next[@]}")
if [ -d "$DATASET/recordings" ]; then
    say "$DATASET/recordings exists already"
else
    ensure_venv
    command=("$PYTHON" -m scripts.datasets.download_fsdd "$DATASET_ARCHIVE" --output "$DATASET")
    add_given command --sha256 "$DATASET_SHA256"
    run_or_print "${command[@]}"
fi
[ "${DRY_RUN:-0}" = 1 ] || print_next "" "${next[@]}"
