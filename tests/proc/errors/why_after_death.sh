#!/bin/bash
# What the broker tells of a job, its database tells when the broker is dead: every verb, every round and notice.
. "$(dirname "$0")/../lib.sh"

# everything WHERE... - all that can be asked.
everything() {
    local verb round id

    for verb in status nodes rounds checkpoints latest events why; do
        case $verb in
        status) MUSTER_TEST_NOW=1900000000000 "$muster" status "$@" ;;
        *) ask $verb "$@" ;;
        esac
        ask $verb --json "$@"
    done
    for round in $(query "SELECT round FROM round WHERE job = '$job' ORDER BY round"); do
        ask round "$round" "$@"
        ask why round "$round" "$@"
        ask why round "$round" --json "$@"
    done
    for id in $(query "SELECT id FROM notice WHERE job = '$job' ORDER BY received_unix_ms, id"); do
        ask why notice "$id" "$@"
    done
}

broker_start
options=(--steps 100 --sharded 1 --barrier 1)
ranks_start 3 --signal-rank 1 --signal-step 30 # committed
all_preempted
committed_whole "$saved"
ranks_start 3 --save-fn 1
ranks_end 1 # written one way, restored another: refused
ranks_start 3 --signal-rank 1 --signal-step 60 --limit-rank 2 --limit-bytes 100 --grace-ms 2500
ranks_end 42 # aborted, not saved
world=3 launch=9 pids=() # unchanged
rank_start 0 --barrier 0
await "rank 0 to join" rank_said 0 '^opened'
kill -TERM "${pids[0]}"
ranks_end 42
ranks_start 3 --fail-rank 1 --fail-step 70 # an error
ranks_end 1
same "states of rounds" "$(query "SELECT DISTINCT state FROM round ORDER BY state" | xargs)" 'aborted committed unchanged'

# progress is written at most once a second: all of it is there when the last of it is older
quiet() { [ $(($(now_ms) - $(query 'SELECT max(heard_unix_ms) FROM progress'))) -gt 2000 ]; }
await "the last progress to be written" quiet
everything --broker "$broker" >"$dir/told by the broker"
everything --db "$db" >"$dir/told by the file"
broker_kill
everything --db "$db" >"$dir/told by the file of a dead broker"
# what it tells besides: how old that is
as_of='^as of .* ago: no musterd runs on .*, and what is running may have ended$'
answers=$((5 + 2 * $(query "SELECT count(*) FROM round WHERE job = '$job'") + $(query "SELECT count(*) FROM notice WHERE job = '$job'")))
same "lines that date the answers" "$(grep -c "$as_of" "$dir/told by the file of a dead broker")" "$answers"
sed -i "/$as_of/d" "$dir/told by the file of a dead broker"
holds "lines of answers" "$(wc -l <"$dir/told by the broker")" -gt 100
for told in "$dir/told by the file" "$dir/told by the file of a dead broker"; do
    diff "$dir/told by the broker" "$told" || fail "the broker and \"$told\" differ"
done
if "$muster" why --job "$job" --broker "$broker" --timeout 1 >"$dir/answer" 2>&1; then
    fail "a dead broker answered"
fi
says "$(cat "$dir/answer")" "$broker" musterd
finish "every verb, round and notice: the database tells exactly what the broker told, also when the broker was killed"
