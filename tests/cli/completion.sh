#!/bin/bash
# completion.sh - each shell offers the same words, and they are those of the help.
set -eu
: "${MUSTER:?}" "${MUSTERD:?}" "${SOURCE_DIR:?}"
export PATH="$(dirname "$MUSTER"):$(dirname "$MUSTERD"):$PATH" LC_ALL=C
unset MUSTER_BROKER MUSTER_DB MUSTER_JOB
scripts=$SOURCE_DIR/tools/completion
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
touch words.key
mkdir checkpoints empty
failed=0

# What a shell offers for a line that ends at the cursor, one word a line, sorted. The last argument may be empty.
of_bash() {
    bash -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _muster
        [ ${#COMPREPLY[@]} = 0 ] || printf "%s\n" "${COMPREPLY[@]}"' - "$scripts/muster.bash" "$@" | sort -u
}
of_fish() { # it writes a directory with a slash, and its description behind a tab
    HOME=$work fish -c 'source $argv[1]; complete -C (string join " " -- $argv[2..])' "$scripts/muster.fish" "$@" |
        sed 's/\t.*//; s|/$||' | sort -u
}
of_zsh() { # its builtins work on its line editor only: these stand for them, and leave out what does not fit
    HOME=$work zsh -f -c '
        compadd() { [[ $1 != -- ]] || shift; print -rl -- ${(M)@:#${words[CURRENT]}*} }
        _describe() { compadd -- ${${(P)2}%%:*} }
        _files() { if [[ ${1:-} == -/ ]]; then compadd -- *(/N); else compadd -- *(N); fi }
        _normal() { print -r -- "$words" }
        source =(sed "\$d" $1)
        shift
        words=("$@") CURRENT=$#
        _muster' - "$scripts/_muster" "$@" | sed '/^$/d' | sort -u
}

expect() { # SHELL WORDS, WORD... - the words that are offered for a line
    local got shell=$1 want=$2
    shift 2
    got=$("of_$shell" "$@" | tr '\n' ' ')
    [ "$got" = "$want${want:+ }" ] || { echo "$shell: \"$*\" offers \"$got\" instead of \"$want\""; failed=1; }
}
listed() { "$@" | sed -nE 's/^ +(-., )?(--[a-z-]+).*/\2/p' | sort -u | tr '\n' ' ' | sed 's/ $//'; }

check() { # SHELL
    verbs=$(muster help | awk '/^  [a-z]+ / { print $1 }' | sort | tr '\n' ' ')
    expect "$1" "${verbs% }" muster ''
    expect "$1" 'save status' muster s
    expect "$1" "$(listed muster notify --help)" muster notify --
    expect "$1" "$(listed muster run --help)" muster run -n 2 --
    expect "$1" '--keep-jobs --keep-jobs-days' musterd --keep-
    expect "$1" 'add list revoke rotate show' muster key ''
    expect "$1" 'node operator viewer' muster key add --role ''
    expect "$1" 'debug' muster run --log-level d
    expect "$1" 'json text' musterd --log-format ''
    expect "$1" 'words.key' muster status --key w
    expect "$1" 'checkpoints' muster import c
    expect "$1" 'why' muster help wh
    expect "$1" '' muster status --json '' # no broker answers, so no job is known
}

check bash
for verb in $(muster help | awk '/^  [a-z]+ / && !/^  (help|version) / { print $1 }'); do
    expect bash "$(listed muster "$verb" --help)" muster "$verb" --
done
expect bash 'mktemp' muster run -n 2 -- mktem

# Names of jobs come from the broker.
cat >muster <<END
#!/bin/sh
case \$1 in status) printf '  "job": "words"\n  "job": "other"\n' ;; *) exec "$MUSTER" "\$@" ;; esac
END
chmod +x muster
PATH=$work:$PATH
for shell in bash fish zsh; do
    ! command -v "$shell" >/dev/null || expect "$shell" 'words' muster forget w
    ! command -v "$shell" >/dev/null || expect "$shell" 'other' muster why --job o
done
rm muster

missing=()
for shell in fish zsh; do
    if command -v "$shell" >/dev/null; then check "$shell"; else missing+=("$shell"); fi
done
[ $failed = 0 ] || exit 1
if [ ${#missing[@]} -gt 0 ]; then
    echo "there is no ${missing[*]} here; bash was tried"
    exit 77
fi
