#!/usr/bin/env bash
# Turns LibriSpeech's FLAC files into wav files of 16 kHz, and writes the manifests to train Jasper with; run again, it
# resumes.
#   bash scripts/preprocess_librispeech.sh
#   SPEEDS="0.9 1.1" bash scripts/preprocess_librispeech.sh  # with copies for the speedp-offline configurations
#   DATASET_PATH=/data/LibriSpeech SUBSETS="train-clean-100 dev-clean" N_WORKERS=8 bash scripts/preprocess_librispeech.sh
# Arguments go to scripts/datasets/preprocess_librispeech.py.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
use_python

: "${DATASET_PATH:=LibriSpeech}" # folder of the corpus
: "${SUBSETS:=}" # empty: all that are there
: "${SPEEDS:=}"  # of copies of the training subsets
: "${N_WORKERS:=$(nproc)}" # processes, by default one for each core

need_whole_numbers 1 9999 N_WORKERS
read_words SUBSETS
subsets=("${words[@]}")
read_words SPEEDS
speeds=("${words[@]}")
command=("$PYTHON" -m scripts.datasets.preprocess_librispeech "$DATASET_PATH" --n-workers "$N_WORKERS")
[ "${#subsets[@]}" -eq 0 ] || command+=(--subsets "${subsets[@]}")
[ "${#speeds[@]}" -eq 0 ] || command+=(--speeds "${speeds[@]}")
exec_or_print "${command[@]}" "$@"
