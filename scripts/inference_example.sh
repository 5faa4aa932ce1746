#!/usr/bin/env bash
# Speaks ten sentences with a trained voice, or transcribes recordings with Jasper; arguments go to inference.py.
#   FASTPITCH=voice.pt HIFIGAN=vocoder.pt AMP=true bash scripts/inference_example.sh --pace 0.9
#   HIFIGAN=vocoder.pt PHRASES=mels.tsv bash scripts/inference_example.sh  # mels or recordings of a list, without a voice
#   MODEL=Jasper MANIFEST=my_voice/list.txt DATASET_PATH=my_voice bash scripts/inference_example.sh
# Without a vocoder's checkpoint the newest in ./output that fits the voice makes the sound, or a downloaded one, or that
# in ./voices, or Griffin-Lim.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run inference_example "$@"
