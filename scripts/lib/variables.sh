# What values the variables of scripts may have; lib.sh sources it, so that a wrong one is answered before anything runs.

# Prints a value for a message: in one line, and not for long.
shown() {
    local value=$1
    [ "${#value}" -le 80 ] || value="${value:0:77}..."
    [[ "$value" != *[[:cntrl:]]* ]] || printf -v value %q "$value"
    printf %s "$value"
}

# read_switch VALUE: sets REPLY to true or false, or fails.
read_switch() {
    case "${1,,}" in
        1 | true | yes | on) REPLY=true ;;
        0 | false | no | off) REPLY=false ;;
        *) return 1 ;;
    esac
}

# need_switches NAME[=OTHER,...]...: makes each variable true or false, unless it is empty, which is the default, or one of
# the other words given; ends with one line where it is none of them.
need_switches() {
    local word name others REPLY
    for word in "$@"; do
        name=${word%%=*} others=""
        [[ "$word" != *=* ]] || others=${word#*=}
        [ -n "${!name:-}" ] || continue
        if read_switch "${!name}"; then
            printf -v "$name" %s "$REPLY"
        elif [[ "${!name}" = *,* || ",$others," != *",${!name},"* ]]; then
            wrong_option "$name=$(shown "${!name}"): expected ${others:+${others//,/, }, }true or false (or 1, yes, on, or 0, no, off)"
        fi
    done
}

# is_whole_number VALUE LEAST MOST: true of digits without a leading zero, which Bash would take for octal. Checked before
# Bash computes with a value, as it would run commands in what is no number.
is_whole_number() {
    [[ "$1" =~ ^(0|[1-9][0-9]{0,8})$ ]] && [ "$1" -ge "$2" ] && [ "$1" -le "$3" ]
}

# need_whole_numbers LEAST MOST NAME...: ends with one line unless each variable is empty or a whole number of that range.
need_whole_numbers() {
    local name
    for name in "${@:3}"; do
        [ -z "${!name:-}" ] || is_whole_number "${!name}" "$1" "$2" ||
            wrong_option "$name=$(shown "${!name}"): expected a whole number from $1 to $2"
    done
}

# read_words NAME: sets `words` to the words of a variable, without expanding patterns in them.
read_words() {
    local word
    read -r -a words <<<"${!1:-}"
    for word in "${words[@]}"; do
        [[ "$word" != -[!0-9.]* ]] || wrong_option "$1=$(shown "${!1}"): $(shown "$word") starts with a hyphen; options are arguments of the script"
    done
}

# need_several_numbers LEAST MOST NAME...: the same of variables that hold several, separated by spaces.
need_several_numbers() {
    local name word words
    for name in "${@:3}"; do
        read_words "$name"
        for word in "${words[@]}"; do
            is_whole_number "$word" "$1" "$2" ||
                wrong_option "$name=$(shown "${!name}"): expected whole numbers from $1 to $2, separated by spaces"
        done
    done
}

# is_name VALUE: true of what can be part of a file's name and of a list's line.
is_name() {
    local LC_ALL=C # lengths in bytes
    [[ "${#1}" -le 100 && "$1" != . && "$1" != .. && "$1" != *[/\|[:cntrl:]]* && "$1" != [[:space:]-]* && "$1" != *[[:space:]] ]]
}

# need_names NAME...: ends with one line unless each variable is empty or a name.
need_names() {
    local name
    for name in "$@"; do
        is_name "${!name:-}" ||
            wrong_option "$name=$(shown "${!name}"): expected a name without / and |, of at most 100 bytes, as it is part of names of files"
    done
}

# has_variable NAME: true if the script that runs declares a variable or has it in a table of options.
has_variable() {
    local text
    [ -n "$SCRIPT" ] && [ -f "$SCRIPT" ] || return 1
    text=$'\n'$(<"$SCRIPT")
    [[ "$text" = *"\${$1:"* || "$text" = *"\${$1="* || "$text" = *$'\n'"$1 -"* ]]
}

# need_plain_value NAME: ends with one line where a value would break a line or be taken for an option.
need_plain_value() {
    [[ "${!1}" != *[[:cntrl:]]* ]] || wrong_option "$1=$(shown "${!1}"): expected a value without control characters"
    [[ "${!1}" != -[!0-9.]* ]] ||
        wrong_option "$1=$(shown "${!1}"): a value that starts with a hyphen would be taken for an option; of a path, write ./$(shown "${!1}")"
}

# The same for all variables of the script that the environment gives.
need_plain_values() {
    local name
    for name in $(compgen -e); do
        [[ "${!name}" = *[[:cntrl:]]* || "${!name}" = -[!0-9.]* ]] || continue
        [[ "$name" != SPEECH_API_KEY || "${!name}" = *[[:cntrl:]]* ]] || continue # it is no option's value
        [[ " PYTHON VENV_PYTHON DRY_RUN USE_SYSTEM_PYTHON " != *" $name "* ]] && ! has_variable "$name" || need_plain_value "$name"
    done
}
