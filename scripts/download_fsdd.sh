#!/usr/bin/env bash
# Downloads the Free Spoken Digit Dataset (CC BY-SA 4.0, 16 MB) into ./fsdd: six speakers, ten digits, fifty takes.
#   bash scripts/download_fsdd.sh
#   DATASET_ARCHIVE=/data/free-spoken-digit-dataset-1.0.10.tar.gz bash scripts/download_fsdd.sh  # a copy that you have
# GitHub makes the archive on demand and publishes no checksum of it; give one that you know as DATASET_SHA256. Where the
# server can, an interrupted download resumes. The folder is complete or absent: what is there is not downloaded again.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
run_script download_fsdd "$@"
