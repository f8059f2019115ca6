#!/bin/bash
# bench.sh - `muster bench` preempts a real job and measures it, leaves nothing behind, and says what it cannot do.
set -euo pipefail
: "${MUSTER:?}" "${MUSTERD:?}" "${MUSTER_PYTHON3:=python3}"
export MUSTERD
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/here"
failed=0

# --- what it measures, and that its places are gone; the environment of other jobs is none of its own
MUSTER_NOTICE_SOURCES=none MUSTER_RANK=5 MUSTER_RESTART_CODE=3 "$MUSTER" bench --dir "$dir/here" --ranks 2 --size 1M --rounds 1 --json > "$dir/answer.json"
"$MUSTER_PYTHON3" - "$dir/answer.json" <<'END'
import json, sys

answer = json.load(open(sys.argv[1]))
assert (answer["ranks"], answer["size_bytes"], answer["rounds"]) == (2, 1 << 20, 1), answer
parts = [answer[name] for name in ("agreement_ms", "save_ms", "left_ms", "restart_ms", "plain_write_ms", "plain_read_ms")]
assert all(part >= 0 for part in parts), answer
assert answer["left_ms"] + 2 >= answer["save_ms"] > 0, answer  # the rows have whole milliseconds
END
[ -z "$(ls -A "$dir/here")" ] || { echo "it left: $(ls -A "$dir/here")"; failed=1; }

# --- says CODE WORDS OPTIONS...: it ends with that code, and its one line on stderr has these words.
says() {
    local code=$1 words=$2 got=0
    shift 2
    "$MUSTER" bench --dir "$dir/here" "$@" > "$dir/out" 2> "$dir/err" || got=$?
    if [ "$got" != "$code" ] || ! grep -q -- "$words" "$dir/err" || [ "$(wc -l < "$dir/err")" != 1 ] || [ -s "$dir/out" ]; then
        echo "muster bench $*: exit $got instead of $code, or not \"$words\":"
        cat "$dir/out" "$dir/err"
        failed=1
    fi
}
says 2 'as in 512M' --size 3X
says 2 'as in 512M' --size 12
says 2 'from 1 to 64' --ranks 65
says 2 'from 1 to 20' --rounds 0
says 1 'more than half of this machine' --size 900G
says 2 'No such file or directory; name another place' --dir "$dir/none"
says 2 'does not know what to do with "now"' now
MUSTERD=$dir/none says 1 'cannot be started; correct or unset it'
cp "$MUSTER" "$dir/muster"
MUSTER=$dir/muster MUSTERD= says 1 'install the package muster-broker, or set MUSTERD'
[ -z "$(ls -A "$dir/here")" ] || { echo "it left: $(ls -A "$dir/here")"; failed=1; }
exit "$failed"
