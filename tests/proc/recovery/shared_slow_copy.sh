#!/bin/bash
# A take-over whose copy takes longer than a lease keeps the lease meanwhile, so no other standby takes it away.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_shared.sh"

needs_fail_points
postgres_start
listen_of=([a]="ipc://$dir/a.sock" [b]="ipc://$dir/b.sock" [c]="ipc://$dir/c.sock")
both=${listen_of[a]},${listen_of[b]},${listen_of[c]}
asked "CREATE ROLE guest LOGIN; GRANT CREATE ON SCHEMA public TO guest"
shared=${shared/user=muster/user=guest}
sharer_start a
sharer_is_active a
job=busy
options=(--steps 100000 --barrier 1 --save-every 5)
ranks_start 2 --step-ms 1
has_batches() { [ "$(asked "SELECT count(*) FROM muster_batch")" -ge 400 ]; }
await "400 batches" has_batches
kill -KILL "${broker_pids[a]}"
for rank in 0 1; do kill_child "${pids[$rank]}" "rank $rank"; done

# Each batch is read in 20 ms: all of them in 8 s.
asked "CREATE FUNCTION slow() RETURNS boolean LANGUAGE plpgsql AS 'BEGIN
    IF current_query() LIKE ''%octet_length%'' THEN PERFORM pg_sleep(0.02); END IF; RETURN true; END';
    CREATE POLICY slow ON muster_batch USING (slow()) WITH CHECK (true);
    ALTER TABLE muster_batch ENABLE ROW LEVEL SECURITY; ALTER TABLE muster_batch FORCE ROW LEVEL SECURITY"
was=$(asked "SELECT epoch FROM muster_lease")
taken() { [ "$(asked "SELECT epoch FROM muster_lease")" != "$was" ]; }
sharer_start b
await "a take-over" taken
at=$(asked "SELECT epoch FROM muster_lease")
sharer_start c
sharer_says c 'standby: musterd at .* is the active broker'
sharer_is_active b
same "the epoch" "$(asked "SELECT epoch FROM muster_lease")" "$at"
holds "take-overs of c" "$(times_said c 'is ready')" = 0
sharer_stop c
sharer_stop b

# A copy whose sync to the disk takes as long.
asked "ALTER TABLE muster_batch DISABLE ROW LEVEL SECURITY"
echo "wait copy_synced:pass" >"$dir/order"
was=$(asked "SELECT epoch FROM muster_lease")
sharer_start b MUSTER_FAIL_POINT_FILE="$dir/order"
await "a take-over" taken
at=$(asked "SELECT epoch FROM muster_lease")
sharer_start c
sharer_is_active b 2
same "the epoch" "$(asked "SELECT epoch FROM muster_lease")" "$at"
holds "take-overs of c" "$(times_said c 'is ready')" = 0
sharer_stop c
sharer_stop b
not_checked=1
finish "a take-over that copies, or syncs its copy, for longer than a lease is one"
