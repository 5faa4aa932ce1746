#!/usr/bin/env bash
# Prints the word and character error rates of a Jasper on LibriSpeech's development and test sets, or on other lists, or
# evaluates the voice of another MODEL by scripts/evaluate_voice.sh.
#   JASPER=output/Jasper_checkpoint_440.pt bash scripts/evaluation.sh
#   DATASETS="dev-clean" AMP=true EMA=true bash scripts/evaluation.sh
#   MANIFESTS=my_voice/list.txt DATASET_PATH=my_voice bash scripts/evaluation.sh --no-trim-silence
#   MODEL=FastPitch HIFIGAN=vocoder.pt PHRASES=filelists/ljs_audio_text_test_filelist.txt RECORDINGS=LJSpeech-1.1 \
#       bash scripts/evaluation.sh
# Arguments go to inference.py --jasper CHECKPOINT, or of a voice to scripts/evaluate_voice.py. Transcripts go to OUTPUT_DIR/<list>.json.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
run_script evaluation "$@"
