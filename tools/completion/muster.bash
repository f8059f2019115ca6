# muster.bash - completion of muster and musterd in bash.
# Every word comes from the programs' own --help when it is needed, so nothing here has to follow them.

_muster_options() { # PROGRAM WORD... - the options that its help lists, a line each: "--name" or "--name VALUE"
    "$@" 2>/dev/null </dev/null | sed -nE 's/^ +(-., )?(--[a-z-]+( [A-Z]+)?).*/\2/p'
    case $1 in *musterd) printf '%s\n' --version --help ;; esac
}

_muster_verbs() { # PROGRAM
    "$1" help 2>/dev/null | sed -nE 's/^  ([a-z]+) .*/\1/p'
}

_muster_jobs() { # PROGRAM - of the broker that the environment names, if it answers within a second
    "$1" status --timeout 1 --json 2>/dev/null </dev/null | sed -nE 's/^ *"job": "([^"\\ ]+)".*/\1/p'
}

_muster_value() { # PROGRAM KIND WORD - what may stand for a VALUE of the help
    case $2 in
    PATH | FILE) mapfile -t COMPREPLY < <(compgen -f -- "$3") ;;
    DIR) mapfile -t COMPREPLY < <(compgen -d -- "$3") ;;
    JOB) mapfile -t COMPREPLY < <(compgen -W "$(_muster_jobs "$1")" -- "$3") ;;
    LEVEL) mapfile -t COMPREPLY < <(compgen -W 'error warning info debug' -- "$3") ;;
    ROLE) mapfile -t COMPREPLY < <(compgen -W 'node operator viewer' -- "$3") ;;
    FORMAT) mapfile -t COMPREPLY < <(compgen -W 'text json' -- "$3") ;;
    esac
}

# What the line "  VERB ARGS  summary" of the help lets stand behind the verb.
_muster_args() { # PROGRAM VERB
    "$1" help 2>/dev/null | sed -nE "s/^  $2 +([^ ]*( [|] [^ ]+)*).*/\1/p" | tr '[]|' '   '
}

_muster_word() { # PROGRAM VERB WORD
    local kind
    for kind in $(_muster_args "$1" "$2"); do
        case $kind in
        DIR | JOB) _muster_value "$1" "$kind" "$3" ;;
        VERB) mapfile -t COMPREPLY < <(compgen -W "$(_muster_verbs "$1")" -- "$3") ;;
        [a-z]*) mapfile -O ${#COMPREPLY[@]} -t COMPREPLY < <(compgen -W "$kind" -- "$3") ;;
        esac
    done
}

_muster() {
    local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} before='' help=() options i kind
    COMPREPLY=()
    [ "$COMP_CWORD" -lt 1 ] || before=${COMP_WORDS[COMP_CWORD - 1]}
    case $program in
    *musterd) help=("$program" --help) ;;
    *)
        if [ "$COMP_CWORD" = 1 ]; then
            mapfile -t COMPREPLY < <(compgen -W "$(_muster_verbs "$program")" -- "$word")
            return
        fi
        help=("$program" "${COMP_WORDS[1]}" --help)
        for ((i = 2; i < COMP_CWORD; i++)); do
            if [ "${COMP_WORDS[1]} ${COMP_WORDS[i]}" = 'run --' ]; then # the program that the ranks run
                if [ $((i + 1)) = "$COMP_CWORD" ]; then
                    mapfile -t COMPREPLY < <(compgen -c -- "$word")
                else
                    mapfile -t COMPREPLY < <(compgen -f -- "$word")
                fi
                return
            fi
        done
        ;;
    esac
    options=$(_muster_options "${help[@]}")
    case $before in
    -j) kind=JOB ;;
    -*) kind=$(sed -n "s/^$before \([A-Z]*\)$/\1/p" <<<"$options") ;;
    *) kind='' ;;
    esac
    if [ -n "$kind" ]; then
        _muster_value "$program" "$kind" "$word"
    elif [ "${word:0:1}" = - ]; then
        mapfile -t COMPREPLY < <(compgen -W "$(sed 's/ .*//' <<<"$options")" -- "$word")
    elif [ "${#help[@]} $COMP_CWORD" = '3 2' ]; then
        _muster_word "$program" "${COMP_WORDS[1]}" "$word"
    fi
}
complete -o filenames -F _muster muster musterd
