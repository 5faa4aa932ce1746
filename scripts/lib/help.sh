# What scripts/lib.sh answers --help with. Works in the project's folder.

# script_variables FILE: prints the environment variables of a script, one on a line: name, default, meaning, and the
# models that it is for (none: all), with an ASCII unit separator between. A variable is declared with a default, in a
# table of options of train.py (a hyphen: the script itself makes the option), or as a default for another script:
#   : "${NAME:=default}" # meaning
#   NAME --option MODELS # meaning
#   exec bash scripts/other.sh NAME=default
script_variables() {
    local line joined="" name default word of_train="" us=$'\x1f'
    local declared='^ *: "\$\{([A-Z][A-Z_0-9]*):?=(.*)\}"[[:space:]]*(# *(.*))?$'
    local tabled='^([A-Z][A-Z_0-9]*) (-|--[a-z-]+)(( [A-Z][A-Za-z0-9-]*)*)( # (.*))?$'
    local -a names=()
    local -A defaults=() meanings=() models=()
    while IFS= read -r line || [ -n "$line" ]; do
        joined+=$line
        if [[ "$joined" = *\\ ]]; then # continued
            joined=${joined%\\}
            continue
        fi
        line=$joined joined=""
        if [[ "$line" =~ $declared ]]; then
            name=${BASH_REMATCH[1]} default=${BASH_REMATCH[2]}
            [[ "$default" != *'$('* && "$default" != *'${'* ]] || default="" # computed: the meaning says how
            [ -n "${meanings[$name]+set}" ] || names+=("$name")
            if [ -n "$default" ] && [[ " or ${defaults[$name]:-} or " != *" or $default or "* ]]; then
                defaults[$name]=${defaults[$name]:+${defaults[$name]} or }$default # several: they depend on MODEL
            fi
            meanings[$name]=${meanings[$name]:-${BASH_REMATCH[4]}}
        elif [[ "$line" =~ $tabled ]]; then
            name=${BASH_REMATCH[1]}
            [ -n "${meanings[$name]+set}" ] || names+=("$name")
            meanings[$name]=${BASH_REMATCH[6]}
            [ "${BASH_REMATCH[2]}" = - ] || meanings[$name]="${BASH_REMATCH[6]:-}${BASH_REMATCH[6]:+ (}\`${BASH_REMATCH[2]}\`${BASH_REMATCH[6]:+)}"
            models[$name]=${BASH_REMATCH[3]# }
        elif [[ "$line" =~ exec\ bash\ scripts/train\.sh(.*) ]]; then
            for word in ${BASH_REMATCH[1]}; do
                [[ "$word" =~ ^([A-Z][A-Z_]*)=([A-Za-z0-9_.]+)$ ]] || continue
                name=${BASH_REMATCH[1]}
                [ -n "${meanings[$name]+set}" ] || names+=("$name")
                : "${defaults[$name]:=${BASH_REMATCH[2]}}"
                : "${of_train:=$'\n'$(script_variables scripts/train.sh)}"
                [[ ! "$of_train" =~ $'\n'"$name$us"[^$us]*"$us"([^$us]*) ]] || : "${meanings[$name]:=${BASH_REMATCH[1]}}"
            done
        fi
    done <"$1"
    for name in "${names[@]}"; do
        printf '%s\x1f%s\x1f%s\x1f%s\n' "$name" "${defaults[$name]:-}" "${meanings[$name]}" "${models[$name]:-}"
    done
}

# Prints a table of the variables in standard input, in script_variables' form; of model $1 alone if it is given, and
# without those whose names follow.
variables_table() {
    local name default meaning models
    while IFS=$'\x1f' read -r name default meaning models; do
        [[ -z "$1" || -z "$models" || " $models " = *" $1 "* ]] || continue
        [[ " ${*:2} " != *" $name "* ]] || continue
        [ -z "$models" ] || [ -n "$1" ] || meaning="${meaning:+$meaning }(${models// /, })"
        name+="=$default"
        [ "${#name}" -le 32 ] || { echo "  $name" && name=""; }
        printf '  %-32s  %s\n' "$name" "$meaning"
    done
}

# Prints the help of a script: the comment it opens with, its variables, those of the script that it runs, and where its
# arguments go.
print_help() {
    local text header own name=platform/${1##*/} other="" model="" program word
    local -a fixed=()
    text=$(<"$1")
    header=$(sed -n -e '1{/^#!/d}' -e '/^#\( \|$\)/!q' -e 's/^# \{0,1\}//p' "$1")
    own=$(script_variables "$1")
    [[ ! "$text" =~ exec\ bash\ (scripts/[a-z_0-9]+\.sh) ]] || other=${BASH_REMATCH[1]}
    for word in $(sed -n -e 's/^\([A-Z][A-Z_]*=.*\)exec bash .*/\1/p' -e 's/^export //p' <<<"$text"); do
        [[ "$word" != *=* ]] || fixed+=("${word%%=*}") # the script sets it
        [[ "$word" != MODEL=* ]] || model=${word#MODEL=}
    done
    echo "$header"
    if [[ "$1" = */platform/* ]]; then
        printf '  %s\n' "bash $name --resume" "EPOCHS=10 OUTPUT_DIR=output/trial bash $name  # a trial"
    fi
    [ -z "$own" ] || printf '\nVariables, set in front of the command as NAME=value:\n'
    [ -z "$own" ] || variables_table "" <<<"$own"
    if [ "$other" = scripts/train.sh ]; then
        printf '\n%s\n' "Variables of $other, which apply too:"
        # shellcheck disable=SC2046 # the names are words
        script_variables "$other" | variables_table "$model" "${fixed[@]}" $(cut -d $'\x1f' -f 1 <<<"$own")
    elif [ -n "$other" ]; then
        printf '\n%s\n' "The variables of $other apply too; \`bash $other --help\` lists them."
    fi
    printf '\n%s\n' "DRY_RUN=1 prints the commands instead of running them; PYTHON=/path/to/python names the Python to run with."
    if [[ "$header" =~ rguments\ go\ to\ ([^ $'\n']+(\ --[a-z-]+(\ [A-Z][A-Za-z0-9-]*)?)*) ]]; then
        program=${BASH_REMATCH[1]%[.,;:]}
        [ "$program" != train.py ] || program+=${model:+ --model $model}
        case "$program" in
            scripts/*.py | pytest) name=${program%.py} name="-m ${name//\//.}" ;;
            *) name=$program ;;
        esac
        echo "Arguments go to $program; \`${PYTHON:-.venv/bin/python} $name --help\` lists them."
    fi
}
