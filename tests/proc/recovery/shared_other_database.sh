#!/bin/bash
# The shared database is dropped and made again while brokers run: none of them goes on with an empty one, and all do with
# the restored one. A broker that dies while its record fills a database knows afterwards that it is there.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_shared.sh"

postgres_start
listen_of=([a]="ipc://$dir/a.sock" [b]="ipc://$dir/b.sock" [c]="ipc://$dir/c.sock")
asked "CREATE DATABASE fleet"
server=$shared
shared=${server/\/postgres\?/\/fleet?}
in_fleet() { as_postgres "$postgres_bin/psql" -XAtq -h "$postgres_dir" -U muster fleet "$@"; }
both=${listen_of[a]},${listen_of[b]}

sharer_start a
sharer_is_active a
sharer_start b
sharer_says b 'standby: musterd at .* is the active broker'
job=restored saved=0 options=(--steps 400 --barrier 1)
ranks_start 2 --step-ms 1
all_finished 400
as_postgres "$postgres_bin/pg_dump" -h "$postgres_dir" -U muster --if-exists -c -t 'muster_*' fleet >"$dir/dump.sql"
asked "DROP DATABASE fleet WITH (FORCE)"
asked "CREATE DATABASE fleet"
sharer_says b 'standby, not active: the shared database .* has no record of muster: this broker worked with another database'
sharer_says a 'the shared database .* has no record of muster: this broker worked with another database'
same "tables that they made" "$(in_fleet -c "SELECT count(*) FROM pg_tables WHERE tablename LIKE 'muster_%'")" 0
in_fleet -1 -v ON_ERROR_STOP=1 <"$dir/dump.sql" >/dev/null || fail "the restore that muster-brokers(7) shows"
is_active() { [ $(($(times_said a 'is ready') + $(times_said b 'is ready'))) -ge 2 ]; }
await "one of them to go on" is_active
says "$("$muster" status restored --broker "$both")" 'job restored: finished'
sharer_stop a
sharer_stop b

# What it starts with is another one, from the start on: it ends.
asked "CREATE DATABASE other"
shared=${server/\/postgres\?/\/other?}
sharer_start c # with a copy of none
sharer_is_active c
sharer_stop c
said=$(timeout 20 "$musterd" --listen "$ipc" --db "$dir/a/muster.db" --shared "$shared" 2>&1) && fail "a copy of another database"
says "$said" 'MUSTER_E_ARGUMENT: the shared database .* has other records: this broker worked with another database; give the address'

# It dies while its record goes out. The next start finds its own records there. So does one without an answer in time.
for how in dies late; do
    asked "CREATE DATABASE filled_$how"
    shared=${server/\/postgres\?/\/filled_$how?}
    mkdir "$dir/$how"
    db=$dir/$how/muster.db listen=$ipc job=$how saved=0
    broker_start
    broker=$ipc both=
    ranks_start 2 --step-ms 1
    all_finished 400
    broker_stop
    "$musterd" --migrate --db "$dir/$how/other.db" --shared "$shared" 2>>"$dir/migrate.log" # makes the tables
    as_postgres "$postgres_bin/psql" -XAtq -h "$postgres_dir" -U muster "filled_$how" -c "
        CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN
            IF NEW.snapshot <> OLD.snapshot AND OLD.snapshot = -1 THEN PERFORM pg_sleep(2.4); END IF; RETURN NEW; END';
        CREATE TRIGGER late BEFORE UPDATE ON muster_lease FOR EACH ROW EXECUTE FUNCTION late()"
    listen_of[$how]=$ipc
    sharer_start $how
    if [ $how = dies ]; then
        ends() { as_postgres "$postgres_bin/psql" -XAtq -h "$postgres_dir" -U muster postgres -c "SELECT count(*) FROM pg_stat_activity
            WHERE query LIKE 'UPDATE muster_lease SET snapshot%' AND state = 'active'" | grep -q 1; }
        await "the end of the snapshot to be on its way" ends
        kill -KILL "${broker_pids[$how]}"
        sharer_start $how
    fi
    sharer_is_active $how
    says "$("$muster" status $how --broker "$ipc")" "job $how: finished"
    sharer_stop $how
done
finish "an empty database in the place of the shared one splits no record, and a record that fills one is known there"
