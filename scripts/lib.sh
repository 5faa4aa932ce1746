# Shared by the scripts: they stop at the first error, work in the caller's folder, and have these functions.
#   source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run train "$@"
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
VENV="$ROOT/.venv"
export PYTHONPATH="$ROOT${PYTHONPATH:+:$PYTHONPATH}"
if [ -z "${HOME:-}" ] || ! [ -w "$HOME" ]; then # where libraries would keep their caches
    cache=$(mktemp -d)
    export XDG_CACHE_HOME="$cache" MPLCONFIGDIR="$cache" NUMBA_CACHE_DIR="$cache"
fi

# fail STATUS MESSAGE: exits with a one-line error; status 2 is for wrong arguments and variables.
fail() {
    local message="${*:2}"
    echo "error: ${message//[[:cntrl:]]/?}" >&2
    exit "$1"
}

# The scripts test for 0 or 1, which they also pass on to the scripts that they start.
case "${DRY_RUN:-}" in
    1 | [Tt]rue | TRUE | [Yy]es | YES | [Oo]n | ON) export DRY_RUN=1 ;;
    "" | 0 | [Ff]alse | FALSE | [Nn]o | NO | [Oo]ff | OFF) export DRY_RUN=0 ;;
    *) fail 2 "DRY_RUN=$DRY_RUN: expected true or false (or 1, yes, on, or 0, no, off)" ;;
esac

# True if $1 runs and is a Python that this project supports.
is_supported_python() {
    "$1" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))' >/dev/null 2>&1
}

# use_python [dev]: sets PYTHON, the interpreter to run with: $PYTHON if it is given, the system's with
# USE_SYSTEM_PYTHON=1 (as in Docker), else .venv's, with the packages of requirements.txt or requirements-dev.txt.
use_python() {
    if [ -n "${PYTHON:-}" ]; then
        [ "$DRY_RUN" = 1 ] || command -v "$PYTHON" >/dev/null ||
            fail 2 "PYTHON=$PYTHON: no such program; name a Python that has requirements.txt, or unset it to use .venv"
    elif [[ "${USE_SYSTEM_PYTHON:-0}" =~ ^(1|true|yes|on)$ ]]; then
        PYTHON=python3
    else
        [ "$DRY_RUN" = 1 ] || update_venv "$@"
        PYTHON="$VENV/bin/python"
    fi
    export PYTHON
}

# update_venv [dev]: makes .venv if it is missing, and installs the requirements if they changed. A .venv without a stamp
# was made by another tool, and is used as is.
update_venv() {
    [ -n "${1:-}" ] || ! [ -e "$VENV/stamp-dev" ] || set -- dev # which includes the others
    local stamp="$VENV/stamp-${1:-base}" python wanted
    local files=("$ROOT"/{constraints,requirements-{speak,train,serve},requirements}.txt ${1:+"$ROOT/requirements-$1.txt"})
    if ! compgen -G "$VENV/stamp-*" >/dev/null && [ -n "$(ls -A "$VENV" 2>/dev/null)" ]; then
        is_supported_python "$VENV/bin/python" || fail 1 "$VENV has no Python 3.10 to 3.14, and" \
            "these scripts did not make it; move it away, or set PYTHON to a Python with the requirements"
        return
    fi
    if ! is_supported_python "$VENV/bin/python"; then
        for python in python3 python3.{14,13,12,11,10} ""; do ! is_supported_python "$python" || break; done
        [ -n "$python" ] || fail 1 "no Python 3.10 to 3.14 found; install one, or set PYTHON to one with the requirements"
        echo "making $VENV with $("$python" --version)" >&2
        rm -rf "$VENV" && mkdir -p "$VENV" && touch "$stamp"
        "$python" -m venv "$VENV" >/dev/null || {
            rm -rf "$VENV"
            fail 1 "$python -m venv $VENV failed; on Debian: apt-get install python3-venv"
        }
    fi
    wanted=$(cat "${files[@]}")
    if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
        echo "installing the requirements into $VENV (once; this can take some minutes)" >&2
        # PIP_USER would make pip refuse to install into a virtual environment.
        PIP_USER=0 "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --no-input \
            -c "$ROOT/constraints.txt" -r "${files[-1]}" || fail 1 "could not install ${files[-1]}; see the messages above"
        echo "$wanted" >"$stamp"
    fi
}

# Replaces this script with a command, so that signals reach it; with DRY_RUN=1, prints the command.
exec_or_print() {
    [ "$DRY_RUN" = 1 ] || exec "$@"
    printf '%q ' "$@"
    echo
}

# run_python -m MODULE ARGUMENTS...: replaces this script with a Python module.
run_python() {
    answer_help "$@"
    use_python
    exec_or_print "$PYTHON" "$@"
}

# run NAME ARGUMENTS...: replaces this script with one in Python, which reads the variables, and in a dry run prints its
# commands itself.
run() {
    answer_help -m speech_toolkit --variables "$@"
    DRY_RUN=0 use_python
    exec "$PYTHON" -m speech_toolkit --variables "$@"
}

# answer_help [-m MODULE] ARGUMENTS...: for --help, prints the comment at the top of the started script, then the options
# and variables that the module lists. This installs nothing.
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
