# lib_top.sh - sourced: muster on a terminal of a given size (tmux), what its screen shows, and keys.
set -euo pipefail
: "${MUSTER:?}" "${TESTS_DIR:?}"
command -v tmux >/dev/null || { echo "there is no tmux here (apt-get install tmux)"; exit 77; }
dir=$(mktemp -d)
unset "${!MUSTER_@}" TMUX NO_COLOR
export MUSTER_TEST_NOW=1767614463000 LC_ALL=C.UTF-8 TMUX_TMPDIR=$dir
terminal() { tmux -L muster -f /dev/null "$@"; }
trap 'terminal kill-server 2>/dev/null || true; rm -rf "$dir"' EXIT
rows=$TESTS_DIR/cli/prog_web_rows # KIND FILE

terminal new-session -d -s kept 'exec cat' # a server without a session ends
variables=() # of the next session: -e NAME=VALUE

screen() { terminal capture-pane -p -t top; }
fail() { echo "FAILED: $*"; screen; exit 1; }
shows() { screen | grep -qE -- "$1"; }
await() { # PATTERN - until the screen has it
    local deadline=$((SECONDS + 30))
    until shows "$1"; do
        [ $SECONDS -lt $deadline ] || fail "the screen does not show \"$1\""
        sleep 0.05 # between two looks
    done
}
begin() { # WIDTH HEIGHT WORDS... - muster with these words, and the shell's word behind it
    local width=$1 height=$2
    shift 2
    ! terminal has-session -t top 2>/dev/null || terminal kill-session -t top
    terminal new-session -d -s top ${variables[@]+"${variables[@]}"} -x "$width" -y "$height" \
        "cd '$dir'; '$MUSTER' $*; echo \"ended with \$?\"; stty -a | grep -o ' echo '; exec cat"
}
keys() { terminal send-keys -t top "$@"; }
fits() { # WIDTH HEIGHT - the picture ends with its foot, within the screen
    [ "$(screen | wc -l)" -le "$2" ] || fail "more than $2 lines"
    screen | awk -v width="$1" 'length($0) > width { exit 1 }' || fail "a line is wider than $1"
    shows 'q ends' || fail "the last line is not there"
}
ends() {
    await 'ended with 0'
    await '^ echo'
}
