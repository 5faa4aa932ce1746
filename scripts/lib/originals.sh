# Variables and arguments of the originals' scripts that are called otherwise here or have gone: a pasted command must not
# lose them without a word. scripts/migration_page.py shows the table in docs/MIGRATING.md.

# Names | scripts (none: all) | models (none: all) | what replaces them: another variable, arguments (VALUE stands for the
# variable's value, COUNT for one that is left out at 0, SWITCH for 1.0 or 0.0; without one of these the variable is true or
# false), or why they have gone.
PUBLISHED_VARIABLES='
DATASET_DIR DATA_DIR|||DATASET_PATH
NSPEAKERS|train||NUM_SPEAKERS
LEARNING_RATE_DECAY|train||LR_DECAY
GRAD_ACCUMULATION_STEPS|train train_benchmark||GRAD_ACCUMULATION
VAL_INTERVAL|train train_benchmark||VALIDATION_INTERVAL
SAVE_FREQUENCY|train train_benchmark||EPOCHS_PER_CHECKPOINT
VAL_MANIFESTS|train train_benchmark||VAL_MANIFEST
TRAIN_MANIFESTS|train_benchmark|Jasper|TRAIN_MANIFEST
NUM_GPUS_SEQUENCE|train_benchmark||NUM_GPUS
TACO_CH|prepare_dataset||TACOTRON2_CHECKPOINT
DATASET_FILELIST|extract_fine_tune_mels||TRAIN_FILELIST
FINE_TUNE_DIR|fine_tune||INPUT_MELS_DIR
FILELIST|inference_example inference_benchmark||PHRASES
BS|inference_example||BATCH_SIZE
CHECKPOINT|inference_example inference_benchmark evaluation|Jasper|JASPER
DATASET|evaluation|Jasper|DATASETS
NUM_STEPS|inference_benchmark|Jasper|ITERATIONS
NUM_WARMUP_STEPS|inference_benchmark|Jasper|WARMUP
RESUME|train||--resume
LOG_FILE|train inference_example||--log-file VALUE
EPOCHS_THIS_JOB|train||--epochs-this-job COUNT
PHONE|train inference_example|FastPitch HiFi-GAN WaveGlow Harmonic Tacotron2|--p-arpabet SWITCH
KL_LOSS_WARMUP|train|FastPitch|--kl-loss-warmup-epochs VALUE
LOAD_PITCH_FROM_DISK|train|FastPitch|--load-pitch-from-disk
APPEND_SPACES|train|FastPitch Tacotron2|--prepend-space-to-text --append-space-to-text
FINE_TUNE_DIR|train|HiFi-GAN|--fine-tuning --input-mels-dir VALUE
CHECKPOINT|train train_benchmark|Jasper|--checkpoint-path VALUE
CUDNN_BENCHMARK|inference_example evaluation||--cudnn-benchmark
TORCHSCRIPT|inference_example|FastPitch HiFi-GAN WaveGlow Harmonic Tacotron2|--torchscript
REPEATS|inference_example|FastPitch HiFi-GAN WaveGlow Harmonic Tacotron2|--repeats VALUE
WARMUP|inference_example|FastPitch HiFi-GAN WaveGlow Harmonic Tacotron2|--warmup-steps COUNT
NUM_WARMUP_STEPS|inference_example evaluation|Jasper|--warmup-steps COUNT
MAX_DURATION|inference_example evaluation|Jasper|--max-duration VALUE
PAD_LEADING|inference_example inference_benchmark evaluation|Jasper|--pad-leading VALUE
PAD_TO_MAX_DURATION|inference_example evaluation|Jasper|--pad-to-max-duration
PREDICTION_FILE|inference_example|Jasper|--output VALUE
LOGITS_FILE|inference_example|Jasper|--save-logits VALUE
PREDICTION_FILE|evaluation|Jasper|each list has a file of its own in OUTPUT_DIR; leave it out
LOGITS_FILE|evaluation|Jasper|they are of one list: MODEL=Jasper bash scripts/inference_example.sh writes them
LOG_FILE|evaluation||OUTPUT_DIR holds the transcripts and error rates of each list; leave it out
LOG_FILE|train_benchmark inference_benchmark||each run has a log of its own in OUTPUT_DIR; leave it out
NUM_STEPS|inference_example evaluation|Jasper|the first recordings alone are the argument --max-utterances N
SEED|inference_example inference_benchmark evaluation|Jasper|transcribing draws no random numbers; leave it out
MODEL_CONFIG|inference_example evaluation|Jasper|the checkpoint holds the configuration; leave it out
DATASET|inference_benchmark|Jasper|set MANIFEST to its manifest
RESUME|train_benchmark||each run is measured from its beginning; leave it out
BMARK_EPOCHS_NUM|train_benchmark||the table is of the steady state, which it finds by itself; leave it out
PRE_ALLOCATE|train train_benchmark||memory is allocated as needed; leave it out
PAD_TO_MAX_DURATION|train train_benchmark|Jasper|batches are padded to their longest recording; leave it out
EVAL_FREQUENCY|train train_benchmark||it counted updates; set VALIDATION_INTERVAL, in epochs
PREDICTION_FREQUENCY|train train_benchmark||transcripts of some utterances are printed with each validation; leave it out
LOAD_MEL_FROM_DISK|extract_fine_tune_mels||the columns of the lists say what is read; leave it out
LOAD_MEL_FROM_DISK|train|FastPitch|the columns of the lists say what is read; leave it out
LOAD_PITCH_FROM_DISK|extract_fine_tune_mels||a column of pitch in the list says it; leave it out
SAMPLING_RATE|train extract_fine_tune_mels||audio.json of the corpus, which scripts/prepare_dataset.sh writes, holds it; leave it out
DALI_DEVICE|||recordings are read by processes on the CPU, not by DALI; leave it out
DISTRIBUTED|||NUM_GPUS, and NNODES of several machines, say how many processes are started; leave it out
'

# Sets MODEL, where it is not given, to the one that alone has a variable which is set, by the script's table of options or
# by what it refuses for other models, and says so unless it is FastPitch, the default, whose originals may have it too.
choose_model() {
    local name names owner
    while read -r owner names; do
        for name in $names; do
            [ -z "${MODEL:-}" ] && [ -n "${!name:-}" ] || continue
            [[ ! "$PUBLISHED_VARIABLES" =~ $'\n'"$name|"[^|]*"|FastPitch|" ]] || continue
            MODEL=$owner
            [ "$MODEL" = FastPitch ] || [ "${RANK:-0}" != 0 ] || echo "note: MODEL=$MODEL, which alone has $name; set MODEL for another" >&2
        done
    done <<<"$(sed -nE -e 's/^([A-Z_]+) (-|--[a-z-]+) ([A-Z][A-Za-z0-9-]*)( #.*)?$/\3 \1/p' \
        -e 's/^ *refuse_variables MODEL=([A-Z])/\1/p' "$SCRIPT")"
}

# Ends with one line if both variables are set.
refuse_both() {
    [ -z "${!1:-}" ] || [ -z "${!2:-}" ] || wrong_option "$1=$(shown "${!1}"): $2=$(shown "${!2}") is set too; leave one out"
}

# take_published SCRIPT ARGUMENTS...: gives the originals' variables that are set to what replaces them, with a note, and sets
# `arguments` to the arguments that this makes and those given; ends with one line where a variable has gone. The arguments
# of Jasper's original scripts that are no options are defaults of variables.
take_published() {
    local script=$1 names scripts models replacement name
    shift
    arguments=()
    take_positions "$script" "$@"
    while IFS='|' read -r names scripts models replacement; do
        [[ -z "$scripts" || " $scripts " = *" $script "* ]] || continue
        [[ -z "$models" || " $models " = *" ${MODEL:-FastPitch} "* ]] || continue
        for name in $names; do
            [ -z "${!name:-}" ] || take_variable "$name" "$replacement"
        done
    done <<<"$PUBLISHED_VARIABLES"
    if [ -n "${MODEL_CONFIG:-}" ] && [ ! -e "$MODEL_CONFIG" ] && [ -e "jasper/$MODEL_CONFIG" ]; then
        echo "note: MODEL_CONFIG=$MODEL_CONFIG is jasper/$MODEL_CONFIG" >&2
        MODEL_CONFIG=jasper/$MODEL_CONFIG
    fi
    arguments+=("${words[@]}")
}

# take_positions SCRIPT ARGUMENTS...: takes the corpus, the configuration, the folder for results and the checkpoint; words
# are the other arguments.
take_positions() {
    local script=$1 name note=""
    local -a positions=(DATASET_PATH MODEL_CONFIG OUTPUT_DIR CHECKPOINT)
    shift
    while [ $# -gt 0 ] && [[ "$1" != -* ]]; do
        [ "${MODEL:-}" = Jasper ] || wrong_option "$1: expected options; only Jasper's scripts take DATASET_PATH MODEL_CONFIG" \
            "OUTPUT_DIR CHECKPOINT, so set variables instead"
        [ "${#positions[@]}" -gt 0 ] || wrong_option "$1: expected options after DATASET_PATH MODEL_CONFIG OUTPUT_DIR CHECKPOINT"
        name=${positions[0]} positions=("${positions[@]:1}")
        if [[ "$name-$script" =~ ^MODEL_CONFIG-(inference_example|evaluation)$ ]]; then
            [ -z "$1" ] || note="note: $1 is not read: the checkpoint holds the configuration"
        elif [ "$name" = DATASET_PATH ]; then # also under its former name
            [ -n "${DATASET_PATH:-}${DATA_DIR:-}" ] || DATASET_PATH=$1
        else
            [ -n "${!name:-}" ] || printf -v "$name" %s "$1"
        fi
        shift
    done
    words=("$@")
    [ -z "$note" ] || echo "$note" >&2
}

# take_variable NAME REPLACEMENT: the same for one variable, which is then unset, so that no other script takes it again.
take_variable() {
    local name=$1 value word REPLY
    need_plain_value "$name"
    [[ "$2" != --* || "$2" =~ VALUE|COUNT ]] || need_switches "$name"
    value=${!name}
    unset "$name"
    case "$2" in
        --*)
            [[ "$2" = *COUNT && "$value" = 0 ]] || [[ ! "$2" =~ VALUE|COUNT|SWITCH && "$value" = false ]] && return
            for word in $2; do
                case "$word" in
                    VALUE | COUNT) word=$value ;;
                    SWITCH) word=$([ "$value" = true ] && echo 1.0 || echo 0.0) ;;
                esac
                arguments+=("$word")
            done
            ;;
        *" "*) { read_switch "$value" && [ "$REPLY" = false ]; } || wrong_option "$name=$(shown "$value"): of the original script; $2" ;;
        *)
            [[ -z "${!2:-}" || "${!2}" = "$value" ]] || wrong_option "$name=$(shown "$value"): of the original script; it is called $2 here, and $2=$(shown "${!2}") is set too"
            [ "${RANK:-0}" != 0 ] || echo "note: $name, of the original script, is $2 here" >&2
            export "$2=$value"
            ;;
    esac
}
