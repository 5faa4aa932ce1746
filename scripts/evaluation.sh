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
use_python

: "${MODEL:=Jasper}" # model
require_model Jasper FastPitch Tacotron2 HiFi-GAN WaveGlow Harmonic
source scripts/lib/originals.sh
take_published evaluation "$@"
set -- "${arguments[@]}"
: "${JASPER:=}" # checkpoint; empty: the newest in ./output; of a voice, the recognizer: none
if [ "$MODEL" != Jasper ]; then
    refuse_variables MODEL=Jasper DATASETS MANIFESTS BATCH_SIZE DATASET_PATH
    : "${FASTPITCH:=}" # checkpoint; empty: the newest
    : "${TACOTRON2:=}" # checkpoint of a voice, instead of FASTPITCH
    : "${HIFIGAN:=}"   # checkpoint of the vocoder; empty: a downloaded one, that in ./voices or Griffin-Lim, the newest with MODEL=HiFi-GAN
    : "${WAVEGLOW:=}"  # the same, instead of HIFIGAN
    : "${HARMONIC:=}"  # the same, instead of HIFIGAN
    : "${PHRASES:=phrases/devset10.tsv}" # list to speak
    find_checkpoint
    note_vocoder
    [ -n "$FASTPITCH$TACOTRON2" ] || find_newest FASTPITCH FastPitch scripts/train.sh # the list gives recordings
    vocoder=${HIFIGAN:-${WAVEGLOW:-${HARMONIC:-griffin-lim}}}
    exec bash scripts/evaluate_voice.sh "${TACOTRON2:-$FASTPITCH}" "$vocoder" "$PHRASES" "$@"
fi
refuse_variables "MODEL=FastPitch, Tacotron2, HiFi-GAN, WaveGlow, Harmonic" FASTPITCH TACOTRON2 HIFIGAN WAVEGLOW HARMONIC PHRASES RECORDINGS TRANSCRIPTS
: "${DATASET_PATH:=LibriSpeech}" # folder of the corpus
: "${DATASETS:=dev-clean dev-other test-clean test-other}" # subsets of LibriSpeech to evaluate
: "${MANIFESTS:=}" # lists or manifests, instead of DATASETS
: "${BATCH_SIZE:=16}" # batch size
: "${AMP:=false}" # `true`: mixed precision
: "${EMA:=}" # `true`: use the EMA weights; `false`: the raw ones; empty: EMA weights where there are any
: "${NUM_GPUS:=auto}" # `auto`: the GPU if there is one; 0: the CPU
: "${OUTPUT_DIR:=output/evaluation}" # folder for the results

find_newest JASPER Jasper scripts/train_jasper.sh
need_switches AMP EMA
read_words MANIFESTS
manifests=("${words[@]}")
if [ "${#manifests[@]}" -eq 0 ]; then
    read_words DATASETS
    for subset in "${words[@]}"; do
        is_name "$subset" || wrong_option "DATASETS=$(shown "$DATASETS"): $(shown "$subset") is no name of a subset"
        manifests+=("$DATASET_PATH/librispeech-$subset-wav.json")
    done
fi
# output_of MANIFEST: prints the file for its transcripts.
output_of() {
    local name
    name=$(basename -- "$1")
    printf %s "$OUTPUT_DIR/${name%.*}.json"
}

declare -A written=()
for manifest in "${manifests[@]}"; do
    output=$(output_of "$manifest")
    [ -z "${written[$output]:-}" ] ||
        wrong_option "MANIFESTS: the transcripts of $manifest and ${written[$output]} would both be $output; rename one"
    written[$output]=$manifest
done
for manifest in "${manifests[@]}"; do
    [ -e "$manifest" ] || [ "${DRY_RUN:-0}" = 1 ] || die "$manifest: no such manifest; scripts/preprocess_librispeech.sh makes LibriSpeech's"
    command=("$PYTHON" inference.py --jasper "$JASPER" --input "$manifest" --dataset-path "$DATASET_PATH")
    command+=(--output "$(output_of "$manifest")" --batch-size "$BATCH_SIZE" --quiet)
    add_flags command
    say "$manifest"
    run_or_print "${command[@]}" "$@"
done
