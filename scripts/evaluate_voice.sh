#!/usr/bin/env bash
# Evaluates a voice or a vocoder on a list: error rates, distances from recordings, speed, and a page with all sounds.
#   bash scripts/evaluate_voice.sh voice.pt griffin-lim phrases/devset10.tsv
#   bash scripts/evaluate_voice.sh vocoder.pt copy.tsv  # copies of its recordings, as scripts/copy_list.sh lists them
#   JASPER=jasper.pt RECORDINGS=LJSpeech-1.1 OUTPUT_DIR=output/ljs_test \
#       bash scripts/evaluate_voice.sh voice.pt hifigan.pt filelists/ljs_audio_text_test_filelist.txt
# The words are a text-to-mel checkpoint, a vocoder's or griffin-lim, and a list; without the first, the list's
# recordings are copied. Arguments go to scripts/evaluate_voice.py.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
use_python

: "${JASPER:=}"      # checkpoint of a recognizer; empty: pocketsphinx, if it is installed
: "${RECORDINGS:=}"  # folder with recordings under the utterances' names; not needed for the list's column wav
: "${TRANSCRIPTS:=}" # list with the words of each utterance, where LIST is of phones
: "${OUTPUT_DIR:=output/evaluation}" # folder for the results
: "${EMA:=}" # `true`: use the EMA weights; `false`: the raw ones; empty: EMA weights where there are any
: "${AMP:=false}" # `true`: mixed precision
: "${NUM_GPUS:=auto}" # `auto`: the GPU if there is one; 0: the CPU

command=("$PYTHON" -m scripts.evaluate_voice --output "$OUTPUT_DIR")
add_given command --jasper "$JASPER" --recordings "$RECORDINGS" --transcripts "$TRANSCRIPTS"
add_flags command
exec_or_print "${command[@]}" "$@"
