#!/usr/bin/env bash
# Prints error rates of a Jasper on LibriSpeech's sets or other lists, or evaluates the voice of another MODEL.
#   JASPER=output/Jasper_checkpoint_440.pt DATASETS="dev-clean" AMP=true bash scripts/evaluation.sh
#   MANIFESTS=my_voice/list.txt DATASET_PATH=my_voice bash scripts/evaluation.sh --no-trim-silence
#   MODEL=FastPitch HIFIGAN=vocoder.pt bash scripts/evaluation.sh
# Arguments go to inference.py --jasper CHECKPOINT, or of a voice to scripts/evaluate_voice.py.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
run_script evaluation "$@"
