#!/bin/bash
# Strangers with a valid key of another job, who do all that a connection can: a job beside each of them saves on a notice in
# its usual time, the broker's memory stays bounded, and `muster broker` counts what was refused.
. "$(dirname "$0")/../lib.sh"

stranger=$TESTS_DIR/proc/prog_stranger
memory_max_kb=393216 # more than before the attack; sanitizers keep 256 MiB of what was freed
save_ms=1500 # of the job's own writer
cd "$dir"
for name in own foreign; do
    "$muster" key add $name --job $name --db "$db" >/dev/null || fail "no key"
done
"$muster" key add all --job '*' --role operator --db "$db" >/dev/null || fail "no key"
broker_start
events=$(sed -n 2p "$dir/port")

memory_kb() { sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$broker_pid/status"; }
stepping() { rank_said 0 '^at step' && rank_said 1 '^at step' && rank_said 2 '^at step'; }

# job_saves: sets took_ms, from the notice until the last rank has saved and left.
job_saves() {
    job=own options=(--step-ms 20 --barrier 1 --say-every 5 --save-fn 1 --save-late-rank 0 --save-late-ms $save_ms)
    export MUSTER_KEY_FILE=$dir/own.key
    ranks_start 3 --steps 1000000
    await "the ranks to step" stepping
    took_ms=$(now_ms)
    kill -TERM "${pids[1]}"
    all_preempted
    took_ms=$(($(now_ms) - took_ms))
    committed_whole "$saved"
    unset MUSTER_KEY_FILE
}

# beside DEED ENDPOINT COUNT [COUNTER [JOB]]: the same while a stranger does that, and until the broker has counted it.
beside() {
    local deed=$1 before attack words counter=${4:-} counted=0

    before=$(memory_kb)
    [ -z "$counter" ] || counted=$(broker_counted "$counter")
    mkfifo "hold-$deed"
    nice -n 19 "$stranger" "$deed" "$2" foreign.key "${5:-foreign}" "$3" <"hold-$deed" >"$deed.out" 2>&1 &
    attack=$!
    started+=("$attack")
    exec 8>"hold-$deed"
    attacks() { grep -q ready "$deed.out"; }
    await "the stranger" attacks
    job_saves
    say "beside $deed: $took_ms ms, usually $usual_ms ms; the broker grew by $(($(memory_kb) - before)) KiB"
    holds "2 x ms of a save beside $deed" $((2 * took_ms)) -le $((3 * usual_ms))
    holds "KiB that the broker grew by $deed" $(($(memory_kb) - before)) -lt "$memory_max_kb"
    is_counted() { [ "$(broker_counted "$counter")" -gt "$counted" ]; }
    [ -z "$counter" ] || await "$counter" is_counted
    exec 8>&-
    wait "$attack" || fail "the stranger ended badly: $(cat "$deed.out")"
    words=$(tail -n 1 "$deed.out")
    holds "times that it did ${words% *}" "${words##* }" -ge 0
}

# --- the stranger's own job has a journal that fills pages
job=foreign options=(--step-ms 1 --save-every 2)
MUSTER_KEY_FILE=$dir/foreign.key ranks_start 1 --steps 120
ranks_end 0

usual_ms=0
for _ in 1 2 3; do
    job_saves
    [ "$took_ms" -le "$usual_ms" ] || usual_ms=$took_ms
done

beside connections "$broker" 2000
beside flood "$broker" 20
beside deaf "$broker" 1 closed_unsent
beside endless "$broker" 10 closed_unread
beside named "$broker" 1 closed_hostile
same "answers to a client that names itself" "$(tail -n 1 named.out)" "named 0"
beside topics "$events" 1 closed_hostile
beside silent "$broker" 500 closed_silent
beside orders "$broker" 4 refused_authority own
same "notices and lost ranks of the honest job" \
    "$(query "SELECT count(*) FROM event WHERE job = 'own' AND kind IN ('node lost', 'peer error', 'order')")" 0
same "launches of the honest job that ended otherwise than by its own notice" \
    "$(query "SELECT count(*) FROM round WHERE job = 'own' AND state <> 'committed'")" 0

finish "a stranger with a key holds connections, floods, does not read, never ends a message, and orders what is not its own: \
a job beside it saves in its usual time"
