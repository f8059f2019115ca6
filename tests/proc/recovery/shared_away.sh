#!/bin/bash
# The shared database is away for longer than a lease: the active broker keeps its nodes and hears their notices, and goes
# on with them when it is back, although a standby waits. It is cut off for good: the nodes go to the standby in time.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_shared.sh"

postgres_start
listen_of=([a]="ipc://$dir/a.sock" [b]="ipc://$dir/b.sock")
both=${listen_of[a]},${listen_of[b]}
options=(--steps 100000 --barrier 1 --signal-rank 1)
trains() { [ 0 != "$(query "SELECT count(*) FROM progress WHERE job = '$job' AND done > 0")" ]; }
is_past() { [ "$(now_ms)" -ge "$1" ]; }
server=$shared

job=away
asked "CREATE ROLE one LOGIN SUPERUSER"
shared=${server/user=muster/user=one}
sharer_start a
sharer_is_active a
says "$("$muster" broker --broker "$broker")" 'since .*' \
    'Since then it has been the active broker of the shared database postgres on .*\. Its lease has [0-9.]+ m?s left'
shared=$server
sharer_start b
sharer_says b 'standby: musterd at .* is the active broker'
ranks_start 2 --step-ms 20
await "its first step" trains
postgres stop -m immediate
since=$(now_ms)
sharer_says a 'until the database can be written again, nodes are answered MUSTER_E_STORAGE'
await "more than a lease" is_past $((since + 8000))
kill -TERM "${pids[1]}" # its notice is heard, and counts when it can be written
await "the end of 10 s" is_past $((since + 10000))
postgres start
sharer_says a 'the state is written again'
all_preempted
committed_whole "$saved"
same "take-overs" "$(times_said a 'is ready') $(times_said b 'is ready')" '1 0'
has_said a 'job away: rank 1 has a notice \(signal\)' 1 || fail "the notice was not heard"
for rank in 0 1; do
    holds "silence that rank $rank heard of" "$(grep -c 'no broker was heard' "$dir/away-1-rank$rank.log" || true)" = 0
done

job=cut
ranks_start 2 --step-ms 20
await "its first step" trains
asked "ALTER ROLE one NOLOGIN; SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'one'" >/dev/null
sharer_is_active b
sharer_says a 'MUSTER_E_LOCKED: the lease in the shared database .* could not be renewed for 2[0-9]... ms'
done_at() { query "SELECT min(done) FROM progress WHERE job = 'cut'"; }
goes_on() { [ "$(done_at)" -gt "$at" ]; }
at=$(done_at)
await "both ranks at the other broker" goes_on
asked "ALTER ROLE one LOGIN"
kill -TERM "${pids[1]}"
all_preempted
committed_whole "$saved"
same "launches of it" "$(query "SELECT count(*) FROM generation WHERE job = 'cut'")" 1
sharer_stop a
sharer_stop b
finish "a broker that loses its database keeps its nodes, and goes on with them or lets them go in time"
