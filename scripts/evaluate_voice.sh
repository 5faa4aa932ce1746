#!/usr/bin/env bash
# Evaluates a voice or a vocoder on a list: error rates, distances from recordings, speed, and a page with all sounds.
#   bash scripts/evaluate_voice.sh voice.pt griffin-lim phrases/devset10.tsv
#   bash scripts/evaluate_voice.sh vocoder.pt copy.tsv  # copies of its recordings, as scripts/copy_list.sh lists them
#   JASPER=jasper.pt RECORDINGS=LJSpeech-1.1 OUTPUT_DIR=output/ljs_test \
#       bash scripts/evaluate_voice.sh voice.pt hifigan.pt filelists/ljs_audio_text_test_filelist.txt
# The words are a text-to-mel checkpoint, a vocoder's or griffin-lim, and a list; without the first, the list's
# recordings are copied. Arguments go to scripts/evaluate_voice.py.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
run_script evaluate_voice "$@"
