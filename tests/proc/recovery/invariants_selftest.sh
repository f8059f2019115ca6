#!/bin/bash
# Each rule of lib_invariants.sh sees a database in which it is broken.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_tasks.sh"

declare -A break_by=(
    [I1_shards]="UPDATE shard SET incarnation = incarnation + 1 WHERE round = 2"
    [I1_required]="UPDATE checkpoint SET shards_required = 1 WHERE round = 2"
    [I1_round]="UPDATE checkpoint SET step = step + 1 WHERE round = 2"
    [I1_generation]="UPDATE node SET generation = 9 WHERE rank = 1"
    [I1_files]="DELETE FROM shard_file WHERE round = 2 AND rank = 0"
    [I3_numbers]="DELETE FROM event WHERE kind = 'decision' AND round = 2"
    [I4_decided]="UPDATE event SET kind = 'decision', round = 2 WHERE kind = 'freeze' AND round = 1"
    [I4_step]="UPDATE event SET step = step + 1 WHERE kind = 'decision' AND round = 2"
    [I4_ended]="UPDATE event SET kind = 'abort', round = 2 WHERE kind = 'freeze' AND round = 1"
    [I4_undecided]="UPDATE event SET kind = 'stuck' WHERE kind = 'decision' AND round = 2"
    [I5_ended]="UPDATE round SET state = 'decided' WHERE round = 3"
    [I5_reason]="UPDATE round SET state = 'aborted' WHERE round = 2"
    [I6_members]="UPDATE node SET generation = 2 WHERE generation = 1 AND rank = 0"
    [I6_late]="UPDATE event SET kind = 'generation opened', generation = 9 WHERE kind = 'started' AND generation = 1"
    [I6_lives]="UPDATE node SET state = 'joined' WHERE rank = 1"
    [I7_open]="UPDATE round SET state = 'decided'"
    [I9_newest]="UPDATE generation SET resume_checkpoint = 1, resume_step = (SELECT step FROM checkpoint WHERE round = 1)
        WHERE generation = 2"
    [I9_whole]="UPDATE checkpoint SET state = 'failed' WHERE round = 3"
    [I9_same]="UPDATE event SET generation = 2, step = 3, kind = 'resume' WHERE kind = 'freeze' AND round = 1"
    [I10_first]="UPDATE event SET kind = 'node lost', rank = 1 WHERE kind = 'freeze' AND round = 1"
    [I10_told]="UPDATE generation SET error_rank = 1 WHERE generation = 1"
    [I11_pinned]="INSERT INTO pin VALUES ('job', 1, 'me', 0); UPDATE checkpoint SET state = 'deleted' WHERE round = 1"
    [I11_restored]="UPDATE generation SET state = 'joining' WHERE generation = 2; UPDATE checkpoint SET state = 'deleting' WHERE round = 3"
    [I11_newest]="UPDATE checkpoint SET state = 'deleting' WHERE round = 3"
    [foreign_keys]="DELETE FROM round WHERE round = 1"
    [T_lost]="DELETE FROM task WHERE state = 'done'"
    [T_ended]="UPDATE task SET state = 'queued' WHERE state = 'done'"
    [T_owner]="INSERT INTO task_part VALUES (77, 1, 0, x'00')"
    [T_attempts]="UPDATE task SET attempt = 2 WHERE state = 'done'"
    [T_cap]="UPDATE task SET attempt = 4, losses = 3 WHERE state = 'leased'"
    [T_leases]="UPDATE task_worker SET state = 'lost'"
    [T_credit]="UPDATE task_worker SET takes = 0"
    [T_result]="UPDATE task SET bytes = bytes + 1 WHERE state = 'done'"
    [T_error]="UPDATE task_queue SET error_pending = 1, error_number = 1"
)

broker_start
options=(--sharded 1 --barrier 1 --say-every 10)
ranks_start 2 --steps 100000
for round in 1 2; do
    await "step 10" rank_said 0 'at step 10$'
    "$muster" save --wait --broker "$broker" --job "$job" >/dev/null
done
kill -TERM "${pids[1]}"
all_preempted
ranks_start 2 --steps $((saved + 5))
all_finished $((saved + 5))
worker_start 0
coordinate_behind stay
in_states() { [ "$(query "SELECT group_concat(state, ' ') FROM (SELECT state FROM task ORDER BY id)")" = "$1" ]; }
await "one task done, one at the worker, one queued" in_states "done leased queued"
broker_kill
invariants
worker_kill 0
kill -KILL "$coordinator"

# A job that resumed at its third round: what is broken is in the second or the first.
"$sql" --write "$db" "PRAGMA wal_checkpoint(TRUNCATE)" >/dev/null
for name in "${!invariant[@]}"; do
    cp "$db" "$dir/broken.db"
    if [ "$name" = integrity ]; then
        printf 'XXXXXXXX' | dd of="$dir/broken.db" bs=1 seek=$((4096 * 3)) conv=notrunc status=none
        if (invariants "$dir/broken.db") >/dev/null 2>&1; then
            fail "a damaged page was not seen"
        fi
        continue
    fi
    "$sql" --write "$dir/broken.db" "PRAGMA foreign_keys = OFF" >/dev/null
    IFS=';' read -ra changes <<<"${break_by[$name]:?}"
    for change in "${changes[@]}"; do
        "$sql" --write "$dir/broken.db" "$change" || fail "cannot break $name"
    done
    rows=$("$sql" "$dir/broken.db" "${invariant[$name]}")
    [ -n "$rows" ] || fail "$name does not see: ${break_by[$name]}"
    if (invariants "$dir/broken.db") >/dev/null; then fail "$name is not asked with the others"; fi
done
finish "${#invariant[@]} rules for the databases of these tests: each is red on a database that breaks it"
