#!/bin/bash
# Two brokers, one database: the active one is killed when a decision is written and nobody heard of it, is told to end,
# is stopped for longer than its lease, and loses its database for a moment. The jobs do not notice more than a pause.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_shared.sh"

needs_fail_points
postgres_start
listen_of=([a]="ipc://$dir/a.sock" [b]="ipc://$dir/b.sock" [c]="ipc://$dir/c.sock")
both=${listen_of[a]},${listen_of[b]} # a job is given both
options=(--steps 400 --barrier 1 --signal-rank 1)
decided_once() {
    same "rounds of $job that were decided twice" "$(query "SELECT count(*) FROM (SELECT round FROM event
        WHERE job = '$job' AND kind = 'decision' GROUP BY round HAVING count(*) > 1)")" 0
}
trains() { [ 0 != "$(query "SELECT count(*) FROM progress WHERE job = '$job' AND done > 0")" ]; }
preempted_and_finished() {
    all_preempted
    committed_whole "$saved"
    ranks_start 2 --step-ms 1
    all_finished 400
    decided_once
}

job=killed
sharer_start a MUSTER_FAIL_POINT=commit_after:event-decision
sharer_is_active a
sharer_start b
sharer_says b "standby: musterd at .* is the active broker"
ranks_start 2 --step-ms 20 --signal-step 20
sharer_ends a 137
sharer_is_active b
preempted_and_finished

job=handed-over
sharer_start a
sharer_says a "standby: musterd at .* is the active broker"
ranks_start 2 --step-ms 20 --signal-step 150
await "its first step" trains
handed=$(now_ms)
sharer_stop b
sharer_is_active a 2
holds "milliseconds of a planned hand-over" $(($(now_ms) - handed)) -lt 2000
preempted_and_finished

job=stopped
sharer_start b
sharer_says b "standby: musterd at .* is the active broker" 2
ranks_start 2 --step-ms 20 --signal-step 350
await "its first step" trains
kill -STOP "${broker_pids[a]}"
sharer_is_active b 2
kill -CONT "${broker_pids[a]}"
sharer_says a 'MUSTER_E_LOCKED: musterd at .* is the active broker'
sharer_says a 'standby: musterd at' 2
preempted_and_finished

job=restarted # the database's server is, and what it was asked then is in doubt
ranks_start 2 --step-ms 20 --signal-step 200 --save-every 10
await "its first step" trains
postgres restart -m immediate
sharer_says b 'in the shared database'
preempted_and_finished

# The copy that a take-over makes holds the same rows, but for those of its own start. Rows of one transaction may be in
# another order.
rows_of() {
    python3 - "$dir/$1/muster.db" <<'END'
import sqlite3, sys
own = ('INSERT INTO "meta"', 'INSERT INTO "broker_past"')
print("\n".join(sorted(line for line in sqlite3.connect(sys.argv[1]).iterdump() if not line.startswith(own))))
END
}
sharer_stop a
sharer_start c MUSTER_FAIL_POINT=copy_named:pass # killed between the copy and its start, it makes another one
sharer_stop b
sharer_ends c 137
holds "bytes of the copy that nobody used" "$(stat -c %s "$dir/c/muster.db")" -gt 0
sharer_start c
sharer_is_active c
sharer_stop c
diff <(rows_of b) <(rows_of c) >"$dir/rows.log" || fail "the copy is not the same"
holds "rows that were compared" "$(rows_of c | grep -c INSERT)" -gt 50
finish "a broker that is killed, ended, stopped or cut off from its database is followed by another one of the same records"
