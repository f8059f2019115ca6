#!/bin/bash
# What tasks may cost: one at a time, in memory, at most 1.5 times a bare echo over the same hops that is placed as they are;
# 20,000 durable ones a second with 16 workers and 64 in flight each. Figures of a build that users have, not of one
# with sanitizers, and with real-time priority: else they are those of whatever else runs here.
. "$(dirname "$0")/../lib.sh"

[ -z "${INSTRUMENT_FLAGS:-}" ] || { say "skipped: built with sanitizers (run it with the preset release)" && exit 77; }
[ -w /dev/shm ] || { say "skipped: there is no /dev/shm to write to" && exit 77; }
[ "$(stat -f -c %T "$dir")" != tmpfs ] || { say "skipped: $dir is in memory, where nothing is durable (set TMPDIR)" && exit 77; }
chrt -f 5 true 2>/dev/null || { say "skipped: this user cannot take real-time priority (chrt)" && exit 77; }

code=0
chrt -f 5 "$BUILD_DIR/tests/bench/bench_tasks" limits /dev/shm "$dir" >"$dir/limits" || code=$?
say "$(cat "$dir/limits")"
same "what was measured" "$(grep -c '"tasks_limits"' "$dir/limits")" 2
same "exit code of the benchmark" "$code" 0
finish "$(sed -n 's/.*"ratio": \([0-9.]*\).*/p50 of one task: \1 times the echo/p' "$dir/limits")" \
    "$(sed -n 's/.*"tasks_per_s": \([0-9]*\).*/\1 durable tasks a second/p' "$dir/limits")"
