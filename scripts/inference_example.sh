#!/usr/bin/env bash
# Speaks ten sentences with a trained voice, or transcribes recordings with Jasper; arguments go to inference.py.
#   bash scripts/inference_example.sh  # with the newest checkpoint in ./output, else in ./pretrained_models
#   FASTPITCH=voice.pt HIFIGAN=vocoder.pt AMP=true bash scripts/inference_example.sh --pace 0.9
#   MODEL=HiFi-GAN bash scripts/inference_example.sh  # through the newest HiFi-GAN
#   TACOTRON2=voice.pt WAVEGLOW=vocoder.pt bash scripts/inference_example.sh
#   HIFIGAN=vocoder.pt PHRASES=mels.tsv bash scripts/inference_example.sh  # mels or recordings of a list, without a voice
#   MODEL=Jasper MANIFEST=my_voice/list.txt DATASET_PATH=my_voice bash scripts/inference_example.sh
#   MODEL=Harmonic bash scripts/inference_example.sh --vocoder-pitch voice  # with the pitch that FastPitch predicts
# Without a vocoder's checkpoint a downloaded one for the voice makes the sound, or that in ./voices, or Griffin-Lim.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source scripts/lib/originals.sh
choose_model
use_python

: "${MODEL:=FastPitch}" # whose newest checkpoint is taken; of a vocoder also that of a FastPitch
: "${AMP:=false}" # `true`: mixed precision
: "${EMA:=}" # `true`: use the EMA weights; `false`: the raw ones; empty: EMA weights where there are any
: "${NUM_GPUS:=auto}" # `auto`: the GPU if there is one; 0: the CPU
require_model FastPitch Tacotron2 HiFi-GAN WaveGlow Harmonic Jasper
take_published inference_example "$@"
set -- "${arguments[@]}"

: "${BATCH_SIZE:=32}" # batch size
need_switches AMP EMA
if [ "$MODEL" = Jasper ]; then
    refuse_variables "MODEL=FastPitch, Tacotron2, HiFi-GAN, WaveGlow, Harmonic" \
        FASTPITCH TACOTRON2 HIFIGAN WAVEGLOW HARMONIC SIGMA DENOISING PHRASES SPEAKER
    : "${JASPER:=}" # checkpoint; empty: the newest
    : "${DATASET_PATH:=LibriSpeech}" # folder of the corpus, or that a list's recordings and mels start from
    refuse_both DATASET MANIFEST
    : "${DATASET:=test-other}" # subset of LibriSpeech to transcribe
    need_names DATASET
    : "${MANIFEST:=$DATASET_PATH/librispeech-$DATASET-wav.json}" # manifest or list to transcribe, instead of DATASET
    : "${OUTPUT_DIR:=output/transcripts}" # folder for the results
    find_newest JASPER Jasper scripts/train_jasper.sh
    command=("$PYTHON" inference.py --jasper "$JASPER" --input "$MANIFEST" --dataset-path "$DATASET_PATH"
        --output "$OUTPUT_DIR/transcripts.json" --batch-size "$BATCH_SIZE")
    add_flags command
    exec_or_print "${command[@]}" "$@"
    exit
fi

refuse_variables MODEL=Jasper JASPER MANIFEST DATASET
: "${FASTPITCH:=}" # checkpoint; empty: the newest, or none for a list with the column mel or wav
: "${TACOTRON2:=}" # checkpoint of a voice, instead of FASTPITCH
: "${HIFIGAN:=}"   # checkpoint of the vocoder
: "${WAVEGLOW:=}"  # the same, instead of HIFIGAN
: "${HARMONIC:=}"  # the same, instead of HIFIGAN
: "${PHRASES:=phrases/devset10.tsv}" # list to speak
: "${SPEAKER:=0}" # speaker, by name or number

find_checkpoint "$@"
[ -n "$FASTPITCH" ] || [ "$SPEAKER" = 0 ] || wrong_option "SPEAKER=$SPEAKER: there is no FastPitch to have speakers; leave it out"
[ -n "$WAVEGLOW" ] || [ -z "${SIGMA:-}" ] || wrong_option "SIGMA=$SIGMA: there is no WaveGlow; set WAVEGLOW, or leave it out"
[ -n "$HIFIGAN$WAVEGLOW" ] || [ -z "${DENOISING:-}" ] ||
    wrong_option "DENOISING=$DENOISING: ${HARMONIC:-Griffin-Lim} makes no noise of its own; set HIFIGAN or WAVEGLOW, or leave it out"
: "${SIGMA:=0.9}"  # of WaveGlow's noise
: "${DENOISING:=$([ -n "$WAVEGLOW" ] && echo 0.01 || echo 0.005)}" # strength of the denoiser, by default 0.005, or 0.01 of WaveGlow; 0: none
note_vocoder
name=$(basename -- "$PHRASES")
precision=$([ "$AMP" = true ] && echo amp || echo fp32)
: "${OUTPUT_DIR:=output/audio_${name%.*}_$precision}" # folder for the results, by default named after the list

command=("$PYTHON" inference.py --input "$PHRASES" --output "$OUTPUT_DIR" --batch-size "$BATCH_SIZE")
[ -z "$FASTPITCH" ] || command+=(--speaker "$SPEAKER")
add_given command --fastpitch "$FASTPITCH" --tacotron2 "$TACOTRON2" --hifigan "$HIFIGAN" --waveglow "$WAVEGLOW" \
    --harmonic "$HARMONIC"
add_given command --dataset-path "${DATASET_PATH:-}"
[ -z "$WAVEGLOW" ] || command+=(--sigma-infer "$SIGMA")
[ -z "$HIFIGAN$WAVEGLOW" ] || command+=(--denoising-strength "$DENOISING")
add_flags command
exec_or_print "${command[@]}" "$@"
