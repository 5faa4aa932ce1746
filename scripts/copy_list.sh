#!/usr/bin/env bash
# Lists recordings of a corpus for copy synthesis, in which a vocoder resynthesizes them from their mels.
#   bash scripts/copy_list.sh LJSpeech-1.1 copy.tsv  # for inference.py --hifigan vocoder.pt -i copy.tsv -o copies
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run_python -m scripts.datasets.make_filelists -d "${1:---help}" --copy-list "${2:---help}" "${@:3}"
