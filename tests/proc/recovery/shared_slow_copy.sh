#!/bin/bash
# A take-over whose copy takes longer than a lease keeps the lease meanwhile, so no other standby takes it away. It tells
# the service manager that it lives, and ends at once when it is told to.
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
leases() { asked "SELECT count(*) FROM muster_lease WHERE ends > '-infinity'"; }
ends_within_a_copy() { # TIMES [NAME=VALUE...] - it is told to
    local told

    was=$(asked "SELECT epoch FROM muster_lease")
    sharer_start b "${@:2}"
    await "a take-over" taken
    told=$(now_ms)
    sharer_stop b
    holds "milliseconds until it ended" $(($(now_ms) - told)) -lt 5000
    same "ends of a take-over" "$(times_said b 'it could not take over')" "$1"
    same "leases that are held" "$(leases)" 0
    [ ! -e "$dir/b/muster.db.part" ] || fail "a part of a copy is left"
}
ends_within_a_copy 1

python3 -c '
import socket, sys, time
heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
heard.bind(sys.argv[1])
with open(sys.argv[2], "w", buffering=1) as log:
    while True:
        line = heard.recv(100).decode()
        log.write(f"{time.time_ns() // 1000000} {line}\n")
' "$dir/notify" "$dir/heard.log" </dev/null >"$dir/notify.log" 2>&1 &
started+=($!)
await "a service manager" test -S "$dir/notify"
was=$(asked "SELECT epoch FROM muster_lease")
sharer_start b NOTIFY_SOCKET="$dir/notify" WATCHDOG_USEC=4000000
await "a take-over" taken
began=$(now_ms)
at=$(asked "SELECT epoch FROM muster_lease")
sharer_start c
sharer_says c 'standby: musterd at .* is the active broker'
sharer_is_active b
took=$(($(now_ms) - began))
holds "milliseconds of the copy" $took -gt 6000
longest=$(awk -v at="$began" -v ends=$((began + took)) '
    $2 == "WATCHDOG=1" && $1 >= at && $1 <= ends { if ($1 - at > most) most = $1 - at; at = $1 }
    END { print (ends - at > most ? ends - at : most + 0) }' "$dir/heard.log")
holds "milliseconds without a word for the service manager" "$longest" -lt 4000
same "the epoch" "$(asked "SELECT epoch FROM muster_lease")" "$at"
holds "take-overs of c" "$(times_said c 'is ready')" = 0
sharer_stop c
sharer_stop b

# A copy whose sync to the disk takes as long.
asked "ALTER TABLE muster_batch DISABLE ROW LEVEL SECURITY"
echo "wait copy_synced:pass" >"$dir/order"
ends_within_a_copy 2 MUSTER_FAIL_POINT_FILE="$dir/order"
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
