#!/usr/bin/env bash
# Downloads LibriSpeech (CC BY 4.0; about 60 GB) into ./LibriSpeech; an interrupted download resumes.
#   SUBSETS="train-clean-100 dev-clean" bash scripts/download_librispeech.sh
#   LIBRISPEECH_SOURCE=/data/archives bash scripts/download_librispeech.sh  # from archives that you have
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

: "${LIBRISPEECH_SOURCE:=https://www.openslr.org/resources/12}" # URL or folder that <subset>.tar.gz are in
: "${SUBSETS:=train-clean-100 train-clean-360 train-other-500 dev-clean dev-other test-clean test-other}" # parts of it
: "${DATASET_PATH:=LibriSpeech}" # folder of the corpus
: "${VERIFY:=true}" # false: checksums do not matter

declare -A checksums=( # SHA-256
    [dev-clean]=76f87d090650617fca0cac8f88b9416e0ebf80350acb97b343a85fa903728ab3
    [dev-other]=12661c48e8c3fe1de2c1caa4c3e135193bfb1811584f11f569dd12645aa84365
    [test-clean]=39fde525e59672dc6d1551919b1478f724438a95aa55f874b576be21967e6c23
    [test-other]=d09c181bba5cf717b3dee7d4d592af11a3ee3a09e08ae025c5506f6ebe961c29
    [train-clean-100]=d4ddd1d5a6ab303066f14971d768ee43278a5f2a0aa43dc716b0e64ecbbbf6e2
    [train-clean-360]=146a56496217e96c14334a160df97fffedd6e0a04e66b9c5af0d40be3c792ecf
    [train-other-500]=ddb22f27f96ec163645d53215559df6aa36515f26e01dd70798188350adcb6d2
)
need_switches VERIFY
read_words SUBSETS
for subset in "${words[@]}"; do
    [[ " ${!checksums[*]} " = *" $subset "* ]] || wrong_option "SUBSETS: $(shown "$subset") is none of ${!checksums[*]}"
done

use_python
for subset in "${words[@]}"; do
    if [ -d "$DATASET_PATH/$subset" ]; then
        say "$DATASET_PATH/$subset exists already"
        continue
    fi
    archive="$DATASET_PATH/$subset.tar.gz"
    # Unpacked elsewhere and then renamed, so that the folder is complete or absent.
    unpacked="$DATASET_PATH/$subset.unpacking"
    [ "${DRY_RUN:-0}" = 1 ] || rm -rf "$unpacked"
    command=("$PYTHON" -m scripts.datasets.download "$LIBRISPEECH_SOURCE/$subset.tar.gz" -o "$archive" --unpack "$unpacked")
    [ "$VERIFY" != true ] || command+=(--sha256 "${checksums[$subset]}")
    run_or_print "${command[@]}"
    [ "${DRY_RUN:-0}" != 1 ] || continue
    [ -d "$unpacked/LibriSpeech/$subset" ] || die "$archive holds no folder LibriSpeech/$subset"
    mv "$unpacked/LibriSpeech/$subset" "$DATASET_PATH/$subset"
    rm -rf "$unpacked" "$archive"
    say "$DATASET_PATH/$subset: $(find "$DATASET_PATH/$subset" -name '*.flac' | wc -l) recordings"
done
next=(bash scripts/preprocess_librispeech.sh)
[ "$DATASET_PATH" = LibriSpeech ] || next=("DATASET_PATH=$DATASET_PATH" "${next[@]}")
[ "${DRY_RUN:-0}" = 1 ] || print_next "" "${next[@]}"
