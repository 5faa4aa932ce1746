# What the scripts share: they stop at the first error, work in the caller's folder, and have these functions.
#   source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run train "$@"
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
VENV="$ROOT/.venv"
MARK=made-by-scripts # a file in a .venv that these scripts have made, may change, and may make anew
export PYTHONPATH="$ROOT${PYTHONPATH:+:$PYTHONPATH}"
export GOMP_SPINCOUNT="${GOMP_SPINCOUNT:-1000}" # idle threads sleep soon, so that other programs slow them down less

# fail STATUS MESSAGE: ends with one line; status 2 is for arguments and variables that cannot be.
fail() {
    local message="${*:2}"
    echo "error: ${message//[[:cntrl:]]/?}" >&2
    exit "$1"
}

# The scripts ask for 0 or 1; a script that another one starts gets the same.
for name in DRY_RUN USE_SYSTEM_PYTHON INSTALL_PACKAGES; do
    case "${!name:-}" in
        "") ;;
        1 | [Tt]rue | TRUE | [Yy]es | YES | [Oo]n | ON) export "$name=1" ;;
        0 | [Ff]alse | FALSE | [Nn]o | NO | [Oo]ff | OFF) export "$name=0" ;;
        *) fail 2 "$name=${!name}: expected true or false (or 1, yes, on, or 0, no, off)" ;;
    esac
done

# True if $1 runs and is a Python that this project supports.
is_supported_python() {
    "$1" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))' >/dev/null 2>&1
}

# Prints the Python to build .venv with: $VENV_PYTHON if it is set, else the first that fits.
find_python() {
    local candidate
    for candidate in "${VENV_PYTHON:-python3}" python3.14 python3.13 python3.12 python3.11 python3.10 /usr/bin/python3; do
        if is_supported_python "$candidate"; then
            echo "$candidate"
            return
        fi
        [ -z "${VENV_PYTHON:-}" ] || fail 1 "VENV_PYTHON=$VENV_PYTHON is not a Python 3.10 to 3.14"
    done
    fail 1 "no Python 3.10 to 3.14 found; install one, or set VENV_PYTHON to its path"
}

# Makes an empty virtual environment with pip in $VENV, by Python $1.
make_venv() {
    local python=$1 package
    rm -rf "$VENV"
    mkdir -p "$VENV"
    touch "$VENV/$MARK"
    ! "$python" -m venv "$VENV" >/dev/null 2>&1 || return 0
    ! "$python" -m virtualenv --quiet "$VENV" >/dev/null 2>&1 || return 0
    # A fresh Debian's python3 has no ensurepip.
    package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    install_package "$package" && "$python" -m venv "$VENV" ||
        fail 1 "$python -m venv $VENV failed; on Debian: apt-get install $package, which INSTALL_PACKAGES=1 does as root"
}

# Installs Debian's package $1 where that is asked for, as .ci/run does, and we may.
install_package() {
    [ "${INSTALL_PACKAGES:-0}" = 1 ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    apt-get install -y -qq "$1" >/dev/null 2>&1 || { apt-get update -qq && apt-get install -y -qq "$1"; } >/dev/null 2>&1
}

# Sets PYTHON, the interpreter to run with: $PYTHON if it is given, the system's with USE_SYSTEM_PYTHON=1 (as in Docker,
# where all is installed), else .venv's, which is made where it is missing. A dry run only needs a name.
use_python() {
    if [ -n "${PYTHON:-}" ]; then
        [ "${DRY_RUN:-0}" = 1 ] || command -v "$PYTHON" >/dev/null ||
            fail 2 "PYTHON=$PYTHON: no such program; name a Python that has requirements.txt, or leave PYTHON out to use .venv"
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

# update_venv [dev]: makes .venv where it is missing, and installs the requirements where they changed; a .venv that
# these scripts did not make is used as it is.
update_venv() {
    local stamp="$VENV/stamp-base" python
    local files=("$ROOT/constraints.txt" "$ROOT"/requirements-{speak,train,serve}.txt "$ROOT/requirements.txt")
    if [ "${1:-}" = dev ]; then
        files+=("$ROOT/requirements-dev.txt")
        stamp="$VENV/stamp-dev"
    fi
    if [ -z "$(ls "$VENV"/{"$MARK",stamp-*} 2>/dev/null)" ] && [ -n "$(ls -A "$VENV" 2>/dev/null)" ]; then
        is_supported_python "$VENV/bin/python" || fail 1 "$VENV has no Python 3.10 to 3.14, and" \
            "these scripts did not make it; move it away, or set PYTHON to a Python with the requirements"
        return # someone's own, as uv makes them: nothing is installed into it
    fi
    if ! { is_supported_python "$VENV/bin/python" && "$VENV/bin/python" -m pip --version >/dev/null 2>&1; }; then
        python=$(find_python) || exit 1
        echo "making $VENV with $("$python" --version)" >&2
        make_venv "$python"
    fi
    if [ "$(cat "$stamp" 2>/dev/null)" != "$(cat "${files[@]}")" ]; then
        echo "installing the requirements into $VENV (once; this can take some minutes)" >&2
        install_requirements "${files[-1]}" || install_requirements "${files[-1]}" ||
            fail 1 "could not install ${files[-1]}; see the messages above"
        cat "${files[@]}" >"$stamp"
    fi
}

# Installs the requirements file $1 in the versions that were tested. PIP_USER would make pip refuse to install into a
# virtual environment.
install_requirements() {
    PIP_USER=0 "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --no-input \
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

# Installs Debian's Chromium for the studio's tests, where that is asked for.
install_browser() {
    [ "${INSTALL_PACKAGES:-0}" != 1 ] || [ "${DRY_RUN:-0}" = 1 ] || command -v chromium >/dev/null ||
        install_package chromium ||
        echo "note: Debian's chromium could not be installed; the studio's tests are skipped" >&2
}

# Runs a command in this script's place, so that a signal to the script reaches it, or with DRY_RUN=1 prints it.
exec_or_print() {
    [ "${DRY_RUN:-0}" = 1 ] || exec "$@"
    printf '%q ' "$@"
    echo
}

# run_python -m MODULE ARGUMENTS...: runs it in this script's place.
run_python() {
    answer_help "$@"
    use_python
    exec_or_print "$PYTHON" "$@"
}

# run_ready -m MODULE ARGUMENTS...: the same, with .venv updated first if its requirements changed.
run_ready() {
    answer_help "$@"
    ensure_venv
    run_python "$@"
}

# run NAME ARGUMENTS...: runs a script of Python in this script's place; it reads the variables, and prints its commands
# itself in a dry run.
run() {
    answer_help -m speech_toolkit --variables "$@"
    DRY_RUN=0 use_python
    exec "$PYTHON" -m speech_toolkit --variables "$@"
}

# answer_help [-m MODULE] ARGUMENTS...: where --help is asked for, prints the comment that the started script opens with,
# then what the module says of its options and variables. Nothing is installed for that.
answer_help() {
    local help=0 argument
    for argument in "$@"; do [[ "$argument" != -h && "$argument" != --help ]] || help=1; done
    [ "$help" = 1 ] || return 0
    sed -n -e '1{/^#!/d}' -e '/^#\( \|$\)/!q' -e 's/^# \{0,1\}//p' "${BASH_SOURCE[-1]}"
    printf '\n%s\n\n' "DRY_RUN=1 prints the commands instead of running them; PYTHON=/path/to/python names the Python."
    [ -n "${PYTHON:-}" ] || PYTHON="$VENV/bin/python"
    command -v "$PYTHON" >/dev/null || PYTHON=python3
    [ "${1:-}" != -m ] || "$PYTHON" "$@" 2>/dev/null || echo "docs/OPTIONS.md lists the options and variables."
    exit 0
}
