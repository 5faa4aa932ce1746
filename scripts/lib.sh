# What the scripts share: they stop at the first error, work in the project's folder, answer --help, and have these
# functions.
#   source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
set -euo pipefail
SCRIPT=${BASH_SOURCE[1]:-} # that sources this file
[[ -z "$SCRIPT" || "$SCRIPT" = /* ]] || SCRIPT="$PWD/$SCRIPT"
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"
VENV="$ROOT/.venv"

die() {
    local message="$*"
    echo "error: ${message//[[:cntrl:]]/?}" >&2
    exit 1
}

# The same for arguments and variables that cannot be.
wrong_option() {
    local message="$*"
    echo "error: ${message//[[:cntrl:]]/?}" >&2
    exit 2
}

# Prints a line of output.
say() {
    printf '%s\n' "$*" 2>/dev/null || die "standard output: cannot be written"
}

for argument in "$@"; do
    if [ -n "$SCRIPT" ] && [[ "$argument" = -h || "$argument" = --help ]]; then
        source scripts/lib/help.sh
        help=$(print_help "$SCRIPT")
        say "$help"
        exit 0
    fi
done

source scripts/lib/variables.sh
need_plain_values
need_switches DRY_RUN USE_SYSTEM_PYTHON
# The scripts ask for 1; a script that another one starts gets the same.
[ "${DRY_RUN:-}" != true ] || export DRY_RUN=1
[ "${USE_SYSTEM_PYTHON:-}" != true ] || USE_SYSTEM_PYTHON=1

# True if $1 runs and is a Python that this project supports.
is_supported_python() {
    "$1" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))' >/dev/null 2>&1
}

# True if $1 can make a virtual environment with pip in it (Debian keeps that in a package of its own).
can_make_venvs() {
    "$1" -c 'import venv, ensurepip' >/dev/null 2>&1
}

# Prints the Python to build .venv with: $VENV_PYTHON if it is set, else the first that fits, one with venv preferred.
find_python() {
    local candidate fallback=""
    if [ -n "${VENV_PYTHON:-}" ]; then
        is_supported_python "$VENV_PYTHON" || die "VENV_PYTHON=$VENV_PYTHON is not a Python 3.10 to 3.14"
        echo "$VENV_PYTHON"
        return
    fi
    for candidate in python3 python3.14 python3.13 python3.12 python3.11 python3.10 /usr/bin/python3; do
        is_supported_python "$candidate" || continue
        if can_make_venvs "$candidate"; then
            echo "$candidate"
            return
        fi
        fallback=${fallback:-$candidate}
    done
    [ -n "$fallback" ] || die "no Python 3.10 to 3.14 found; install one, or set VENV_PYTHON to its path"
    echo "$fallback"
}

# Makes an empty virtual environment with pip in $VENV, by Python $1.
make_venv() {
    local python=$1 version
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    rm -rf "$VENV"
    if ! can_make_venvs "$python"; then
        if "$python" -m virtualenv --version >/dev/null 2>&1; then
            "$python" -m virtualenv --quiet "$VENV"
            return
        fi
        # A fresh Debian's python3 has no ensurepip. In a container we are root and can get it; a user gets the command.
        local package="python$version-venv"
        if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
            die "$python cannot make virtual environments; on Debian: apt-get install $package (or: python3-virtualenv)"
        fi
        echo "installing Debian's $package, which $python needs to make .venv" >&2
        apt-get install -y -qq "$package" >/dev/null 2>&1 ||
            { apt-get update -qq >/dev/null && apt-get install -y -qq "$package" >/dev/null; } ||
            die "could not install $package; install it by hand and try again"
    fi
    "$python" -m venv "$VENV" || die "$python -m venv $VENV failed; on Debian: apt-get install python$version-venv"
}

# Prints a fingerprint of the Python in $VENV and of the requirements files given.
fingerprint() {
    { "$VENV/bin/python" --version && cat "$@"; } | sha256sum | cut -d ' ' -f 1
}

# Sets PYTHON, the interpreter to run with: $PYTHON if it is given, the system's with USE_SYSTEM_PYTHON=1 (as in Docker,
# where all is installed), else .venv's, which is made where it is missing. A dry run only needs a name.
use_python() {
    if [ -n "${PYTHON:-}" ]; then
        [ "${DRY_RUN:-0}" = 1 ] || command -v "$PYTHON" >/dev/null ||
            wrong_option "PYTHON=$PYTHON: no such program; name a Python that has requirements.txt, or leave PYTHON out to use .venv"
    elif [ "${USE_SYSTEM_PYTHON:-0}" = 1 ]; then
        PYTHON=python3
    else
        [ "${DRY_RUN:-0}" = 1 ] || [ -x "$VENV/bin/python" ] || update_venv
        PYTHON="$VENV/bin/python"
    fi
    export PYTHON
    use_writable_caches
}

# ensure_venv [dev]: the same, but .venv is updated first if its requirements changed; with "dev" it also holds what the
# tests need.
ensure_venv() {
    [ -n "${PYTHON:-}" ] || [ "${USE_SYSTEM_PYTHON:-0}" = 1 ] || [ "${DRY_RUN:-0}" = 1 ] || update_venv "$@"
    use_python
}

# update_venv [dev]: makes .venv where it is missing, and installs the requirements where they changed.
update_venv() {
    local files=("$ROOT/constraints.txt" "$ROOT/requirements.txt") stamp="$VENV/stamp-base" python
    if [ "${1:-}" = dev ]; then
        files+=("$ROOT/requirements-dev.txt")
        stamp="$VENV/stamp-dev"
    fi
    if ! { is_supported_python "$VENV/bin/python" && "$VENV/bin/python" -m pip --version >/dev/null 2>&1; }; then
        python=$(find_python) || exit 1
        echo "making $VENV with $("$python" --version)" >&2
        make_venv "$python"
    fi
    if [ "$(cat "$stamp" 2>/dev/null)" != "$(fingerprint "${files[@]}")" ]; then
        echo "installing the requirements into $VENV (once; this can take some minutes)" >&2
        install_requirements "${files[-1]}" || install_requirements "${files[-1]}" ||
            die "could not install ${files[-1]}; see the messages above"
        fingerprint "${files[@]}" >"$stamp"
    fi
}

# Installs the requirements file $1 in the versions that were tested. PIP_USER would make pip refuse to install into a
# virtual environment.
install_requirements() {
    local quiet=--quiet
    [ -t 2 ] && quiet=""
    PIP_USER=0 run_child "$VENV/bin/python" -m pip install $quiet --disable-pip-version-check --no-input \
        -c "$ROOT/constraints.txt" -r "$1"
}

# Libraries that keep caches in the home folder warn or fail where there is none to write to.
use_writable_caches() {
    if [ -z "${HOME:-}" ] || ! [ -w "$HOME" ]; then
        local cache="$VENV/cache"
        [ -d "$VENV" ] || cache=$(mktemp -d)
        export XDG_CACHE_HOME="$cache" MPLCONFIGDIR="$cache/matplotlib" NUMBA_CACHE_DIR="$cache/numba"
        mkdir -p "$MPLCONFIGDIR" "$NUMBA_CACHE_DIR"
    fi
}

# Prints how many GPUs there are: those that nvidia-smi lists and CUDA_VISIBLE_DEVICES does not hide.
count_gpus() {
    local number=0 visible=0 device
    local -a devices
    [ "${CUDA_VISIBLE_DEVICES-all}" = "" ] || number=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ') || true
    if [ -n "${CUDA_VISIBLE_DEVICES:-}" ]; then
        IFS=, read -r -a devices <<<"$CUDA_VISIBLE_DEVICES"
        for device in "${devices[@]}"; do # CUDA ignores what follows one that is not there
            if [[ "$device" =~ ^(GPU|MIG)- ]]; then device=0; fi # one that is named
            [[ "$device" =~ ^[0-9]{1,9}$ ]] && [ "$device" -lt "$number" ] || break
            visible=$((visible + 1))
        done
        number=$visible
    fi
    echo "$number"
}

# resolve_gpus [MOST]: makes NUM_GPUS a number. `auto` is all GPUs, or MOST of them, and 0, the CPU, where there is none.
# CPU=true and CUDA=false are older names of NUM_GPUS=0, and CUDA=true of NUM_GPUS=1.
resolve_gpus() {
    need_switches CPU CUDA
    if [ "${NUM_GPUS:=auto}" = auto ]; then
        case "${CPU:-}-${CUDA:-}" in
            true-* | *-false) NUM_GPUS=0 ;;
            *-true) NUM_GPUS=1 ;;
            *) NUM_GPUS=$(count_gpus) ;;
        esac
        [ "$NUM_GPUS" -le "${1:-$NUM_GPUS}" ] || NUM_GPUS=$1
    fi
    is_whole_number "$NUM_GPUS" 0 999 ||
        wrong_option "NUM_GPUS=$(shown "$NUM_GPUS"): expected auto or a whole number from 0 to 999"
    [ "$NUM_GPUS" = 0 ] || case "${CPU:-}-${CUDA:-}" in
        true-* | *-false) wrong_option "CPU=${CPU:-} CUDA=${CUDA:-}: NUM_GPUS=$NUM_GPUS is set too; leave one out" ;;
    esac
}

# The same for what one process does.
resolve_gpu() {
    resolve_gpus 1
    [ "$NUM_GPUS" -le 1 ] || wrong_option "NUM_GPUS=$NUM_GPUS: expected auto, 0 or 1; one process does this"
}

# The same for training, which is slow without a GPU: resolve_training_gpus [MOST] says so, after what `choice` says.
resolve_training_gpus() {
    local asked=${NUM_GPUS:-auto} least several small=8 advice=""
    resolve_gpus "$@"
    [ -z "${choice:-}" ] || echo "$choice" >&2
    if [ "$asked$NUM_GPUS" = auto0 ]; then
        if [ -z "${BS:-}${BATCH_SIZE:-}" ]; then # the batch is of a GPU with 16 GB
            read -r least several <<<"${GLOBAL_BATCH[$MODEL]}"
            [ "$least" -ge 128 ] || small=1
            advice="; where memory does not suffice, BS=$small GRAD_ACCUMULATION=$((least / small)) makes the published batch"
        fi
        echo "no GPU: training on the CPU$advice" >&2
    fi
    require_gpus "$NUM_GPUS"
}

# Ends with one line where there are fewer GPUs than $1, before torchrun starts and shows tracebacks.
require_gpus() {
    local found
    [ "$1" -gt 0 ] && [ "${DRY_RUN:-0}" != 1 ] || return 0
    found=$("$PYTHON" -c 'import torch; print(torch.cuda.device_count())') || die "$PYTHON cannot import torch"
    [ "$found" -ge "$1" ] ||
        die "NUM_GPUS=$1, but PyTorch sees $found GPUs here; set NUM_GPUS to that, or NUM_GPUS=0 for the CPU"
}

# True if the list of phrases $1 names a column of mel-spectrograms or recordings.
gives_sound() {
    [ -f "$1" ] && head -n 1 "$1" 2>/dev/null | tr '|\t' '\n\n' | grep -qxE '(mel|wav)[[:space:]]*'
}

# find_checkpoint ARGUMENTS...: sets TACOTRON2 or FASTPITCH to the newest checkpoint where no voice is given, unless the list
# in PHRASES needs none, and HIFIGAN, WAVEGLOW or HARMONIC where MODEL is that vocoder, or else to a vocoder for the voice.
find_checkpoint() {
    vocoder_note=""
    [ "${MODEL:-}" != Tacotron2 ] || find_newest TACOTRON2 Tacotron2 scripts/train_tacotron2.sh
    [ -n "$TACOTRON2" ] || gives_sound "$PHRASES" ||
        find_newest FASTPITCH FastPitch scripts/train.sh voices/lj-small.pt
    [ "${MODEL:-}" != HiFi-GAN ] || find_newest HIFIGAN HiFi-GAN scripts/train_lj22khz.sh
    [ "${MODEL:-}" != WaveGlow ] || find_newest WAVEGLOW WaveGlow scripts/train_waveglow.sh
    [ "${MODEL:-}" != Harmonic ] || find_newest HARMONIC Harmonic scripts/train.sh voices/vocoder-small.pt
    [ -n "$HIFIGAN$WAVEGLOW$HARMONIC" ] || [ "${AUDIO:-true}" != true ] || find_vocoder "${TACOTRON2:-$FASTPITCH}" "$@"
}

# find_vocoder VOICE ARGUMENTS...: sets HIFIGAN, WAVEGLOW or HARMONIC to a downloaded vocoder that reads the voice's mels,
# or else to the shipped one if it does, and vocoder_note to what makes the sound, unless the arguments say it.
find_vocoder() {
    local path facts="" others="" found="" candidates
    [[ -n "$1" && " ${*:2}" != *" --"@(hifigan|waveglow|harmonic|no-audio|griffin-lim-iters)* ]] || return 0
    candidates=$(downloaded HiFi-GAN)
    [[ "${TORCHSCRIPT:-}" = true || " ${*:2} " = *" --torchscript "* ]] || # the others have none
        candidates+=$'\n'$(downloaded WaveGlow)$'\n'voices/vocoder-small.pt
    while read -r path; do
        [ -f "$path" ] && [[ "${DRY_RUN:-0} $path" != "1 voices/"* ]] || continue
        [ "${DRY_RUN:-0}" = 1 ] || # which reads no checkpoint, and takes the first that was downloaded
            facts=$("$PYTHON" -m scripts.inspect_checkpoint "$1" --beside "${path%/*}" --json 2>/dev/null </dev/null) || continue
        if [[ "${DRY_RUN:-0}" = 1 || "$facts" =~ "\"file\": \"$path\", \"model\": \""[A-Za-z-]+"\", \"fits\": true" ]]; then
            found=$path
            break
        fi
        others+="; $path does not fit $1"
    done <<<"$candidates"
    case "$found" in
        pretrained_models/waveglow/*) WAVEGLOW=$found ;;
        voices/*) HARMONIC=$found ;;
        *) HIFIGAN=$found ;;
    esac
    vocoder_note="note: ${found:-Griffin-Lim} makes the sound$others; HIFIGAN, WAVEGLOW or HARMONIC names another vocoder"
}

# Says which vocoder was found, if one was looked for.
note_vocoder() {
    [ -z "$vocoder_note" ] || echo "$vocoder_note" >&2
}

# Prints the checkpoints of model $1 that scripts/download_models.sh has put into ./pretrained_models, the newest first.
downloaded() {
    local folder=${1,,}
    find -L "pretrained_models/${folder//-/}" -type f \( -name '*.pt' -o -name 'g_*' -o -name 'nvidia_*' \) \
        ! -name '*discrim*' -printf '%T@ %p\n' 2>/dev/null | sort -nr | cut -d ' ' -f 2- || true
}

newest_downloaded() {
    downloaded "$1" | head -n 1
}

# Where the variable named $1 is empty, sets it to the newest checkpoint of model $2: in ./output, where $3 leaves it,
# else in ./pretrained_models. $4 is what to take where there is none, except in a dry run.
find_newest() {
    [ -z "${!1}" ] || return 0
    local newest
    newest=$(find output -maxdepth 1 -name "$2_checkpoint_*.pt" -printf '%T@ %p\n' 2>/dev/null |
        sort -n | tail -n 1 | cut -d ' ' -f 2- || true)
    [ -n "$newest" ] || newest=$(newest_downloaded "$2")
    [ -n "$newest" ] || [ "${DRY_RUN:-0}" = 1 ] || ! [ -f "${4:-}" ] || newest=$4
    if [ -z "$newest" ]; then
        [ "${DRY_RUN:-0}" = 1 ] || die "no $2 checkpoint in ./output or ./pretrained_models; train one ($3), or set $1"
        newest="output/$2_checkpoint_NEWEST.pt"
    fi
    printf -v "$1" %s "$newest"
}

# Ends with one line where Docker is missing.
require_docker() {
    [ "${DRY_RUN:-0}" = 1 ] || command -v docker >/dev/null ||
        die "docker: no such program; install Docker, or work without: the scripts make .venv by themselves"
}

# Takes LJSpeech in ./data, where the original HiFi-GAN keeps it, if DATASET_PATH is the default and it is not there.
find_ljspeech() {
    [ "$DATASET_PATH" = LJSpeech-1.1 ] && ! [ -d LJSpeech-1.1 ] && [ -d data/LJSpeech-1.1 ] || return 0
    DATASET_PATH=data/LJSpeech-1.1
    [ "${RANK:-0}" != 0 ] || echo "note: DATASET_PATH=$DATASET_PATH, as there is no LJSpeech-1.1" >&2
}

# list_path COLUMNS SPLIT: prints the list that scripts/prepare_dataset.sh makes of a split. COLUMNS are audio, audio_text,
# mel_text or mel_dur_pitch_text.
list_path() {
    case "$1" in
        *_text) echo "$FILELISTS/${NAME}_$1_$2_filelist.txt" ;;
        *) [ "$NAME $2" = "ljs train" ] && echo "$FILELISTS/ljs_audio_train_v3.txt" || echo "$FILELISTS/${NAME}_audio_$2.txt" ;;
    esac
}

# Ends with one line unless MODEL is one of the names given.
require_model() {
    local name
    for name in "$@"; do
        [ "$name" != "$MODEL" ] || return 0
    done
    wrong_option "MODEL=$(shown "$MODEL"): expected one of $*"
}

# Ends with one line if a variable named after $1, which says whose they are, is set.
refuse_variables() {
    local owner=$1 name
    for name in "${@:2}"; do
        [ -z "${!name:-}" ] || wrong_option "$name=$(shown "${!name}"): not a variable of MODEL=$MODEL, but of $owner; leave it out"
    done
}

# How Python starts torchrun. It leaves SIGHUP to the system: under nohup, training outlives a closed terminal.
TORCHRUN=(-m torch.distributed.run --signals-to-handle SIGINT,SIGTERM,SIGQUIT)

# Sets launcher, the words that start train.py in as many processes as NUM_GPUS and NNODES ask for, and world_size,
# their number. For several machines MASTER_ADDR names the first; RUN_ID, by default $1, is a name that they share.
set_launcher() {
    local processes=$((NUM_GPUS > 0 ? NUM_GPUS : 1))
    world_size=$((processes * NNODES))
    launcher=("$PYTHON")
    [ "$processes" -eq 1 ] || export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} # as torchrun sets it, with a warning
    if [ -n "${WORLD_SIZE:-}" ]; then # one process a GPU is started from outside, as scripts/slurm_train.sh does
        world_size=$WORLD_SIZE
    elif [ "$NNODES" -gt 1 ]; then
        [ -n "${MASTER_ADDR:-}" ] || wrong_option "NNODES=$NNODES needs MASTER_ADDR, the host name of the first machine"
        : "${PORT:=29500}"
        launcher+=("${TORCHRUN[@]}" --nnodes "$NNODES" --nproc-per-node "$processes")
        if [ -n "${NODE_RANK:-}" ]; then
            launcher+=(--node-rank "$NODE_RANK" --master-addr "$MASTER_ADDR" --master-port "$PORT")
        else
            launcher+=(--rdzv-backend c10d --rdzv-id "${RUN_ID:-$1}" --rdzv-endpoint "$MASTER_ADDR:$PORT")
        fi
    elif [ "$processes" -gt 1 ]; then
        launcher+=("${TORCHRUN[@]}" --nproc-per-node "$processes")
        if [ -n "${PORT:-}" ]; then
            launcher+=(--master-port "$PORT")
        else
            launcher+=(--standalone) # finds a free port by itself
        fi
    fi
}

# Utterances, or a vocoder's segments, in an update of the published runs: one number, or the least and the most.
declare -A GLOBAL_BATCH=([FastPitch]=256 [HiFi-GAN]=128 [Jasper]=512 [Tacotron2]="48 1024" [WaveGlow]="4 80" [Harmonic]=8)

# What a process makes of it by default: utterances of a micro-batch, and micro-batches.
declare -A PROCESS_BATCH=([FastPitch]="32 1" [HiFi-GAN]="16 1" [Jasper]="32 2" [Tacotron2]="48 1" [WaveGlow]="4 1" [Harmonic]="8 1")

# fitting_batch MODEL LIST: prints the BS that a training list asks for that is shorter than the batches that training
# takes on this machine by default.
fitting_batch() {
    local clips gpus batch accumulated
    [ -f "$2" ] || return 0 # a dry run
    clips=$(wc -l <"$2") gpus=$(count_gpus)
    gpus=$((gpus > 0 ? gpus : 1))
    read -r batch accumulated <<<"${PROCESS_BATCH[$1]}"
    [ "$clips" -ge "$((batch * gpus * accumulated))" ] || echo "BS=$((clips > gpus ? clips / gpus : 1))"
}

# Notes when the global batch, of $2 accumulated micro-batches of $1 utterances a process, is not as published.
note_global_batch() {
    local global_batch=$((world_size * $1 * $2)) least most published
    read -r least most <<<"${GLOBAL_BATCH[$MODEL]}"
    [ "$MODEL" != Jasper ] || most=1024 # on 16 GPUs of DGX-2
    : "${most:=$least}" "${published:=$least}"
    if [ "$global_batch" -ge "$least" ] && [ "$global_batch" -le "$most" ] || [ "${RANK:-0}" != 0 ]; then
        return 0
    fi
    [ "$least" = "$most" ] || published="$least to $most"
    echo "note: the global batch is $global_batch utterances (processes x batch x accumulated: $world_size x $1 x" \
        "$2); the published settings are for $published" >&2
}

# True if NUM_GPUS asks a command of one process for a GPU.
uses_gpu() {
    resolve_gpu
    [ "$NUM_GPUS" -gt 0 ]
}

# add_given ARRAY --option VALUE...: adds the options whose value is not empty to the array of that name.
add_given() {
    local -n array=$1
    shift
    for (( ; $# > 0; )); do
        [ -z "$2" ] || array+=("$1" "$2")
        shift 2
    done
}

# add_flags ARRAY: adds --cuda where a GPU is used, --amp where AMP is true, and --ema or --no-ema as EMA is true or
# false.
add_flags() {
    local -n array=$1
    need_switches AMP EMA
    ! uses_gpu || array+=(--cuda)
    [ "${AMP:-}" != true ] || array+=(--amp)
    case "${EMA:-}" in true) array+=(--ema) ;; false) array+=(--no-ema) ;; esac
}

# Runs a command that gets SIGTERM when this script ends, whatever ends it: Bash passes no signal on.
run_child() {
    if setpriv --pdeathsig TERM true 2>/dev/null; then
        setpriv --pdeathsig TERM -- "$@"
    else # an old one, or Busybox's
        "$@"
    fi
}

# The same, or with DRY_RUN=1 prints the command.
run_or_print() {
    if [ "${DRY_RUN:-0}" = 1 ]; then
        say "$(printf '%q ' "$@")"
    else
        run_child "$@"
    fi
}

# Runs or prints a command in this script's place, so that a signal to the script reaches it.
exec_or_print() {
    [ "${DRY_RUN:-0}" = 1 ] || exec "$@"
    run_or_print "$@"
}

# run_python -m MODULE ARGUMENTS...: runs it in this script's place.
run_python() {
    use_python
    exec_or_print "$PYTHON" "$@"
}

# run_script NAME ARGUMENTS...: runs scripts/NAME.py in this script's place; it reads the variables, and prints its commands
# itself in a dry run.
run_script() {
    DRY_RUN=0 use_python
    exec "$PYTHON" -m "scripts.$1" "${@:2}"
}

# print_next WHAT WORDS...: prints a command to run next, as it can be pasted; WHAT says what for, and may be empty.
print_next() {
    local command
    command=$(printf ' %q' "${@:2}")
    say "next${1:+, $1}:$command"
}
