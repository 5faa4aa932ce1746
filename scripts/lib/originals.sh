# Variables of the originals' scripts that are called otherwise here: a pasted command must not lose them without a word.

# Variable -> what to set instead.
declare -A RENAMED=(
    [BS]="BATCH_SIZE"
    [DATASET_DIR]="DATASET_PATH"
    [DATA_DIR]="DATASET_PATH"
    [EVAL_FREQUENCY]="VALIDATION_INTERVAL, in epochs,"
    [FILELIST]="PHRASES"
    [FINE_TUNE_DIR]="INPUT_MELS_DIR of scripts/fine_tune.sh"
    [GRAD_ACCUMULATION_STEPS]="GRAD_ACCUMULATION, and BS to the utterances of one micro-batch,"
    [KL_LOSS_WARMUP]="the argument --kl-loss-warmup-epochs"
    [LEARNING_RATE_DECAY]="LR_DECAY"
    [NSPEAKERS]="NUM_SPEAKERS"
    [NUM_GPUS_SEQUENCE]="NUM_GPUS"
    [NUM_STEPS]="ITERATIONS"
    [NUM_WARMUP_STEPS]="WARMUP"
    [PHONE]="the argument --p-arpabet"
    [SAVE_FREQUENCY]="EPOCHS_PER_CHECKPOINT"
    [TACO_CH]="TACOTRON2_CHECKPOINT"
    [VAL_INTERVAL]="VALIDATION_INTERVAL"
    [VAL_MANIFESTS]="VAL_MANIFEST"
)

# refuse_renamed NAMES...: ends with one line if one of these variables is set.
refuse_renamed() {
    local name
    for name in "$@"; do
        [ -z "${!name:-}" ] || wrong_option "$name=${!name}: of the original script; set ${RENAMED[$name]} instead"
    done
}
