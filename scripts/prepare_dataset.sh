#!/usr/bin/env bash
# Splits a corpus in LJSpeech's layout into lists, writes the settings of its mel-spectrograms (audio.json, by which every
# model is then trained), and extracts the mel-spectrograms and, where there are durations, the pitch of FastPitch.
#   bash scripts/prepare_dataset.sh
#   DATASET_PATH=my_voice NAME=my_voice N_VAL=20 N_TEST=0 bash scripts/prepare_dataset.sh --resume
#   DATASET_PATH=my_voice NAME=my_voice N_VAL=20 N_TEST=0 FEATURES=false bash scripts/prepare_dataset.sh  # lists
#   FEATURES=mels bash scripts/prepare_dataset.sh  # mel-spectrograms alone, also where there are durations
#   TACOTRON2_CHECKPOINT=tacotron2.pt bash scripts/prepare_dataset.sh
# Arguments go to extract_mels.py. Durations come from the Tacotron 2 in TACOTRON2_CHECKPOINT if it is given, else from
# DATASET_PATH/TextGrid/*.TextGrid if there are any, else from DATASET_PATH/durations/*.pt made elsewhere, else from the
# Tacotron 2 that scripts/download_models.sh has downloaded. Without durations there are the mel-spectrograms, which
# Tacotron 2 learns from. A vocoder needs none of that: without metadata.csv, and with FEATURES=false, audio.json and the
# lists are all that is made.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source scripts/lib/originals.sh
take_published prepare_dataset "$@"
set -- "${arguments[@]}"

: "${DATASET_PATH:=LJSpeech-1.1}" # folder of the corpus
: "${NAME:=ljs}" # first part of the lists' names; ljs means the customary split of LJSpeech-1.1
: "${FILELISTS:=filelists}" # folder for the lists
: "${N_VAL:=100}" # clips set aside where the lists are not there yet, and no *_IDS file says which
: "${N_TEST:=500}" # clips for testing
: "${TRAIN_IDS:=}" # files with one clip's name on each line
: "${VAL_IDS:=}" # the same for validation
: "${TEST_IDS:=}" # the same for testing
: "${FEATURES:=auto}" # `true`: features of FastPitch; `mels`: mel-spectrograms; `false`: lists; `auto`: the first of these that can be made
: "${TACOTRON2_CHECKPOINT:=}" # a Tacotron 2 whose attention gives the durations; empty: one in ./pretrained_models, where no durations are there
: "${AUDIO_CONFIG:=}" # file of the mel settings; by default audio.json in DATASET_PATH, else in FILELISTS
: "${NUM_GPUS:=auto}" # `auto`: the GPU if there is one; 0: the CPU
find_ljspeech

need_names NAME
need_whole_numbers 0 9999999 N_VAL N_TEST
need_switches FEATURES=mels,auto
[ -d "$DATASET_PATH" ] || [ "${DRY_RUN:-0}" = 1 ] || die "$DATASET_PATH: no such folder; run scripts/download_dataset.sh, or set DATASET_PATH"

if [ "$FEATURES$TACOTRON2_CHECKPOINT$*" = auto ] && [ -d "$DATASET_PATH" ] &&
    ! [ -f "$DATASET_PATH/metadata.csv" ] && ! [ -f "$(list_path audio_text train)" ]; then
    FEATURES=false
    echo "note: $DATASET_PATH has no metadata.csv: lists of recordings alone are made, which a vocoder learns from" >&2
fi

options=(--extract-mels --extract-pitch-char)
missing="" settings=()
if [ "$FEATURES" = mels ]; then
    [ -z "$TACOTRON2_CHECKPOINT" ] || wrong_option "FEATURES=mels makes no durations; leave out TACOTRON2_CHECKPOINT or FEATURES"
    options=(--extract-mels)
elif [ -n "$TACOTRON2_CHECKPOINT" ]; then
    options+=(--extract-durations --tacotron2-checkpoint "$TACOTRON2_CHECKPOINT")
elif compgen -G "$DATASET_PATH/TextGrid/*.TextGrid" >/dev/null; then
    options+=(--extract-durs-from-textgrids)
    settings=(INPUT_TYPE=phone)
elif ! compgen -G "$DATASET_PATH/durations/*.pt" >/dev/null || [ -f "$DATASET_PATH/durations/follower.json" ]; then
    [ "$FEATURES" = false ] || TACOTRON2_CHECKPOINT=$(newest_downloaded Tacotron2)
    if [ -n "$TACOTRON2_CHECKPOINT" ]; then
        options+=(--extract-durations --tacotron2-checkpoint "$TACOTRON2_CHECKPOINT")
        echo "note: durations from $TACOTRON2_CHECKPOINT, symbols that it lacks dropped; FEATURES=false takes none" >&2
    elif ! compgen -G "$DATASET_PATH/durations/*.pt" >/dev/null; then
        missing="no durations: put TextGrids into $DATASET_PATH/TextGrid, set TACOTRON2_CHECKPOINT to a Tacotron 2, or download one (bash scripts/download_models.sh tacotron2)"
    fi
fi
! uses_gpu || options+=(--cuda)
case "$FEATURES" in
    mels) ;;
    true) [ -z "$missing" ] || die "$missing" ;;
    auto)
        if [ -z "$missing" ]; then
            FEATURES=true
        else
            FEATURES=mels options=(--extract-mels)
            echo "note: $missing; without them FastPitch learns its alignment (1.1), and a vocoder needs none" >&2
        fi
        ;;
    false) [ $# = 0 ] || wrong_option "$*: for extract_mels.py, which FEATURES=false does not run; leave the arguments out" ;;
esac

if [ "${DRY_RUN:-0}" = 1 ]; then use_python; else ensure_venv; fi

split_options=()
if [ "$NAME" = ljs ] && [ -z "$TRAIN_IDS$VAL_IDS$TEST_IDS" ]; then
    # Which clips published voices were trained on; a part of the corpus is split alike.
    TRAIN_IDS=filelists/ljs_train_ids.txt VAL_IDS=filelists/ljs_val_ids.txt TEST_IDS=filelists/ljs_test_ids.txt
    split_options+=(--skip-missing)
fi
for split in train val test; do
    ids="${split^^}_IDS"
    [ -z "${!ids}" ] || split_options+=("--$split-ids" "${!ids}")
done

# The lists of recordings: where those of texts are there already, their first column, so that the split stays.
if [ -f "$(list_path audio_text train)" ]; then
    for split in train val test; do
        from=$(list_path audio_text "$split") to=$(list_path audio "$split")
        if [ -f "$from" ] && ! [ -f "$to" ] && [ "${DRY_RUN:-0}" != 1 ]; then
            cut -d '|' -f 1 "$from" >"$to.tmp"
            mv "$to.tmp" "$to"
        fi
    done
elif [ "$FEATURES" != false ] || ! [ -f "$(list_path audio train)" ]; then
    run_or_print "$PYTHON" -m scripts.datasets.make_filelists --dataset-path "$DATASET_PATH" --output "$FILELISTS" \
        --name "$NAME" --n-val "$N_VAL" --n-test "$N_TEST" "${split_options[@]}"
fi

# The settings of the corpus's mels, unless they are there already.
audio_config=${AUDIO_CONFIG:-$DATASET_PATH/audio.json}
if ! [ -f "$audio_config" ]; then
    if [ -z "$AUDIO_CONFIG" ] && [ -d "$DATASET_PATH" ] && ! [ -w "$DATASET_PATH" ]; then
        AUDIO_CONFIG=$FILELISTS/${NAME}_audio.json audio_config=$FILELISTS/${NAME}_audio.json
        echo "note: $DATASET_PATH cannot be written; what its mels are is in AUDIO_CONFIG=$AUDIO_CONFIG" >&2
    fi
    like=()
    add_given like --like "$TACOTRON2_CHECKPOINT"
    [ -f "$audio_config" ] || run_or_print "$PYTHON" -m scripts.datasets.describe_mels "$@" \
        --dataset-path "$DATASET_PATH" --output "$audio_config" "${like[@]}"
fi
add_given options --audio-config "$AUDIO_CONFIG"
corpus=("DATASET_PATH=$DATASET_PATH")
[ -z "$AUDIO_CONFIG" ] || corpus+=("AUDIO_CONFIG=$AUDIO_CONFIG")

if [ "$FEATURES" != false ]; then
    what="" # to train with durations
    if [ "$FEATURES" = mels ]; then
        what="for Tacotron 2" columns=mel_text trainer=scripts/train_tacotron2.sh model=Tacotron2
    else
        columns=mel_dur_pitch_text trainer=scripts/train.sh model=FastPitch
    fi
    recordings=() lists=()
    for split in train val test; do # the first list's pitch statistics normalize all
        if [ -f "$(list_path audio_text "$split")" ] || [ "${DRY_RUN:-0}" = 1 ]; then
            recordings+=("$(list_path audio_text "$split")")
            lists+=("$(list_path "$columns" "$split")")
        fi
    done
    [ "${#lists[@]}" -gt 0 ] || die "$DATASET_PATH/metadata.csv: no such file; text-to-mel models need transcripts"
    run_or_print "$PYTHON" extract_mels.py --dataset-path "$DATASET_PATH" --wav-text-filelist "${recordings[@]}" \
        --output-meta-file "${lists[@]}" "${options[@]}" "$@"
    # How training must read the text: by the kind of the TextGrids' phones; as a Tacotron 2 did it finds by itself.
    if [ "${#settings[@]}" -gt 0 ] && [ -f "${lists[0]}" ]; then
        settings+=("SYMBOL_SET=$(cut -d '|' -f 4 "${lists[0]}" | LC_ALL=C grep -q '[^ -~]' && echo ipa || echo arpabet)")
    fi
    print_next "$what" "${settings[@]}" "${corpus[@]}" "TRAIN_FILELIST=${lists[0]}" \
        "VAL_FILELIST=${lists[1]:-${lists[0]}}" $(fitting_batch "$model" "${lists[0]}") bash "$trainer"
fi
if [ "$FEATURES" != true ] && { [ -f "$(list_path audio_text train)" ] || [ "${DRY_RUN:-0}" = 1 ]; }; then
    val=$(list_path audio_text val)
    [ -f "$val" ] || [ "${DRY_RUN:-0}" = 1 ] || val=$(list_path audio_text train)
    print_next "for a voice that finds its durations" "${corpus[@]}" \
        "TRAIN_FILELIST=$(list_path audio_text train)" "VAL_FILELIST=$val" $(fitting_batch FastPitch "$(list_path audio_text train)") \
        bash scripts/train.sh
fi
val=$(list_path audio val)
[ -f "$val" ] || [ "${DRY_RUN:-0}" = 1 ] || val=$(list_path audio train)
print_next "for a vocoder" "${corpus[@]}" "TRAIN_FILELIST=$(list_path audio train)" "VAL_FILELIST=$val" \
    $(fitting_batch HiFi-GAN "$(list_path audio train)") bash scripts/train_lj22khz.sh
