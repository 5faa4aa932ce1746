#!/usr/bin/env bash
# Downloads LJSpeech-1.1 (public domain, 2.6 GB) into ./LJSpeech-1.1; an interrupted download resumes.
#   bash scripts/download_dataset.sh
#   DATASET_ARCHIVE=/data/LJSpeech-1.1.tar.bz2 bash scripts/download_dataset.sh  # from a copy that you have
# The folder is complete or absent, so what is there already is not downloaded again.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

: "${DATASET_ARCHIVE:=https://data.keithito.com/data/speech/LJSpeech-1.1.tar.bz2}" # URL or path
: "${DATASET_SHA256=be1a30453f28eb8dd26af4101ae40cbf2c50413b1bb21936cbcdc6fae3de8aa5}" # empty: not verified
: "${DATASET_PATH:=LJSpeech-1.1}" # folder of the corpus
find_ljspeech

next=(bash scripts/prepare_dataset.sh)
[ "$DATASET_PATH" = LJSpeech-1.1 ] || next=("DATASET_PATH=$DATASET_PATH" "${next[@]}")
if [ -f "$DATASET_PATH/metadata.csv" ]; then
    say "$DATASET_PATH exists already"
    print_next "" "${next[@]}"
    exit 0
fi
ensure_venv
archive="$DATASET_PATH.tar.bz2"
# Unpacked elsewhere and then renamed, so that the folder is complete or absent.
unpacked="$DATASET_PATH.unpacking"
[ "${DRY_RUN:-0}" = 1 ] || rm -rf "$unpacked"
run_or_print "$PYTHON" -m scripts.datasets.download "$DATASET_ARCHIVE" -o "$archive" \
    ${DATASET_SHA256:+--sha256 "$DATASET_SHA256"} --unpack "$unpacked"
[ "${DRY_RUN:-0}" != 1 ] || exit 0
mapfile -t found < <(find "$unpacked" -maxdepth 2 -name metadata.csv)
[ "${#found[@]}" = 1 ] || die "$archive holds no corpus in LJSpeech's layout (metadata.csv and wavs/)"
mv "$(dirname "${found[0]}")" "$DATASET_PATH"
rm -rf "$unpacked" "$archive"
say "$DATASET_PATH: $(wc -l <"$DATASET_PATH/metadata.csv") clips"
print_next "" "${next[@]}"
