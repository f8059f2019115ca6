#!/bin/bash
# The shared database is put back to a dump of some rounds ago: under a running broker and job, as by a replica that was
# behind when it was promoted; and after a save that the dump holds for open. The next launch does not go on from the older
# checkpoint: it imports what was forgotten, and the job resumes from the newest.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_shared.sh"
. "$(dirname "$0")/../lib_put_back.sh"

postgres_start
listen_of=([a]="ipc://$dir/a.sock" [b]="ipc://$dir/b.sock")
both=${listen_of[a]},${listen_of[b]}
epoch() { asked "SELECT epoch FROM muster_lease"; }
dump() { as_postgres "$postgres_bin/pg_dump" -h "$postgres_dir" -U muster --clean -t 'muster_*' postgres >"$dir/dump.sql" || fail "pg_dump"; }
put_back() {
    as_postgres "$postgres_bin/psql" -Xq1 -v ON_ERROR_STOP=1 -h "$postgres_dir" -U muster postgres <"$dir/dump.sql" >"$dir/put_back.log" 2>&1 ||
        fail "psql"
}
was=0
is_taken() { [ "$(asked "SELECT count(*) FROM muster_lease WHERE ends > clock_timestamp() AND epoch > $was")" = 1 ]; }
# whose_turn READY_A READY_B - one of both is ready once more; the test's questions go to its copy.
is_ready() { has_said a 'is ready' $(($1 + 1)) || has_said b 'is ready' $(($2 + 1)); }
whose_turn() {
    await "a broker to be active" is_ready "$1" "$2"
    active=a
    ! has_said b 'is ready' $(($2 + 1)) || active=b
    db=$dir/$active/muster.db
}

job=running
sharer_start a
sharer_is_active a
sharer_start b
sharer_says b 'standby: musterd at .* is the active broker'
saved=0
ranks_start 1 --steps 30 --save-every 20
all_finished 30
ranks_start 1 --steps 1000000 --step-ms 20
await "the launch to run" rank_said 0 '^opened'
dump
saves
saves
newest=$(query "SELECT max(step) FROM checkpoint")
was=$(epoch)
ready_a=$(times_said a 'is ready') ready_b=$(times_said b 'is ready')
put_back
await "the lease of the restored database to be taken" is_taken
whose_turn "$ready_a" "$ready_b"
two_saves_are_found

# The broker that told of a save's end, and the one that did not.
for who in told untold; do
    job=decided-$who
    second_save_is_decided
    dump
    saved=20
    all_finished 50
    same "committed" "$(committed)" "20 40"
    sharer_stop a
    sharer_stop b
    put_back
    at=$active
    [ $who = told ] || at=$([ $active = a ] && echo b || echo a)
    ready=$(times_said "$at" 'is ready')
    sharer_start "$at"
    sharer_is_active "$at" $((ready + 1))
    ranks_start 1 --steps 60
    imports 1 40
    same "committed" "$(committed)" "20 40"
    rules_hold I1_shards I1_required I1_round I1_files I4_decided I4_step I4_ended I4_undecided I5_ended I5_reason
    saved=40
    ranks_start 1 --steps 60
    all_finished 60
    active=$at
    other=$([ $at = a ] && echo b || echo a)
    standbys=$(times_said $other standby)
    sharer_start $other
    sharer_says $other standby $((standbys + 1))
done

# What a host told is not forgotten when its copy is made again.
sharer_stop a
sharer_stop b
mark=$dir/a/muster.db.mark
printf '%020d %020d\n' 100 "$(stat -c %i "$mark")" >"$mark"
sharer_start a
sharer_says a 'was restored from an older copy; saves that were open in that copy were given up'
sharer_stop a
finish "a shared database that was put back to an earlier state loses no checkpoint: the next launch imports all"
