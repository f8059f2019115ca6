#!/bin/bash
# What a server of --shared can do to a broker that works: a statement that it cuts off, a full disk, no more connections.
# The job waits and goes on. And what else can be in the database: half of it, or a newer broker's records.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_shared.sh"

needs_tmpfs "$dir/small" 1m
postgres_start
listen_of=([a]="ipc://$dir/a.sock")
both=${listen_of[a]}
[ "$(id -u)" != 0 ] || { chown nobody:nogroup "$dir/small" && chmod 711 "$dir"; }
asked "CREATE ROLE guest LOGIN; GRANT CREATE ON SCHEMA public TO guest"
right=$shared
shared=${shared/user=muster/user=guest}
sharer_start a
sharer_is_active a
job=long
options=(--steps 100000 --barrier 1 --save-every 20 --until-file "$dir/end")
ranks_start 2 --step-ms 5
saves() { query "SELECT count(*) FROM checkpoint WHERE job = 'long' AND state = 'committed'"; }
goes_on() { [ "$(saves)" -gt $((had + 1)) ]; }
trains() { had=$(saves) && await "saves behind: $1" goes_on; }
trains "the start"

# 1. The server ends a statement that takes too long; the broker had given it up before, and finds that nothing came of it.
asked "CREATE SEQUENCE times; GRANT USAGE ON times TO guest; CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN
    IF nextval(''times'') = 1 THEN PERFORM pg_sleep(20); END IF; RETURN NEW; END';
    CREATE TRIGGER slow BEFORE INSERT ON muster_batch FOR EACH ROW EXECUTE FUNCTION slow()"
is_cut_off() { grep -q 'canceling statement due to statement timeout' "$postgres_dir/server.log"; }
await "the server to cut a statement off" is_cut_off
sharer_says a 'cannot write a batch in the shared database .*: no answer in time'
trains "a statement that was cut off"
asked "DROP TRIGGER slow ON muster_batch"

# 2. Its disk is full.
asked "CREATE TABLESPACE small LOCATION '$dir/small'"
asked "ALTER TABLE muster_batch SET TABLESPACE small; CREATE TABLE filler (data bytea) TABLESPACE small;
    ALTER TABLE filler ALTER data SET STORAGE EXTERNAL"
for bytes in 100000 7000 1000; do
    while asked "INSERT INTO filler VALUES (decode(repeat('00', $bytes), 'hex'))" 2>/dev/null; do :; done
done
sharer_says a 'refuses to write a batch: could not extend file .*No space left on device'
asked "DROP TABLE filler"
trains "a full disk of the server"
same "takes of the lease" "$(times_said a 'is ready')" 1

# 3. It has no connection left when the broker's is lost. A batch may be in doubt then: the broker begins again.
asked "ALTER ROLE guest CONNECTION LIMIT 0; SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'guest'" >/dev/null
is_refused() { grep -q 'too many connections for role "guest"' "$postgres_dir/server.log"; }
await "the broker to be refused" is_refused
asked "ALTER ROLE guest CONNECTION LIMIT -1"
trains "no connection"
touch "$dir/end"
ranks_end 0
same "rounds that were decided twice" "$(query "SELECT count(*) FROM (SELECT round FROM event
    WHERE kind = 'decision' GROUP BY job, round HAVING count(*) > 1)")" 0
sharer_stop a
took=$(times_said a 'is ready')

# 4. Records of a newer musterd. An older one is a standby, and the lease is free for the newer one.
shared=$right
refused() { # PATTERN - by musterd
    local said code=0

    said=$(timeout 20 "$musterd" --listen "$ipc" --db "$dir/r-$RANDOM/muster.db" --shared "$shared" 2>&1) || code=$?
    holds "exit code" "$code" -ge 1 -a "$code" -le 2
    says "$said" "$1"
}
asked "UPDATE muster_snapshot SET data = set_byte(data, 63, get_byte(data, 63) + 1) WHERE part = 0" # PRAGMA user_version
older='warning: standby: the shared database .* has records of schema [0-9]+, and this musterd knows schema [0-9]+: install the newer'
sharer_start r
sharer_says r "$older"
same "leases that are held" "$(asked "SELECT count(*) FROM muster_lease WHERE ends > now()")" 0
says "$("$muster" status --db "$shared" 2>&1 || true)" 'has schema [0-9]+, this muster knows up to'
asked "UPDATE muster_snapshot SET data = set_byte(data, 63, get_byte(data, 63) - 1) WHERE part = 0"
sharer_is_active r
sharer_stop r

# 5. Half of the database: records without the lease's row, or without its table.
asked "CREATE TABLE kept AS SELECT * FROM muster_lease; DELETE FROM muster_lease"
refused 'has records, and its table muster_lease has no row: only a part of it was restored; restore the whole'
asked "DROP TABLE muster_lease"
refused 'has records, and its table muster_lease has no row'
asked "INSERT INTO muster_lease SELECT * FROM kept; GRANT ALL ON muster_lease TO guest"
asked "INSERT INTO muster_batch SELECT seq + 1, epoch, '' FROM muster_lease"
refused 'has batches beyond the [0-9]+ that its table muster_lease knows: only a part of it was restored'
asked "DELETE FROM muster_batch WHERE seq > (SELECT seq FROM muster_lease)"
asked "CREATE TABLE parts AS SELECT * FROM muster_snapshot; DELETE FROM muster_snapshot"
refused 'has no snapshot: somebody deleted it, or restored only a part'
asked "INSERT INTO muster_snapshot SELECT * FROM parts"
sharer_start a
sharer_is_active a $((took + 1))

# 6. The lease's row goes while it is active.
asked "DELETE FROM kept; WITH gone AS (DELETE FROM muster_lease RETURNING *) INSERT INTO kept SELECT * FROM gone"
sharer_says a 'has no row in its table muster_lease any more'
sharer_says a 'standby, not active: .* has no record of muster: this broker worked with another database'
asked "INSERT INTO muster_lease SELECT * FROM kept"
sharer_is_active a $((took + 2))
sharer_stop a

# 7. A standby of an older musterd says so before it is needed.
sharer_start a
sharer_is_active a $((took + 3))
sharer_start old
sharer_says old 'info: standby: musterd at .* is the active broker .* ms at least$'
asked "UPDATE muster_snapshot SET data = set_byte(data, 63, get_byte(data, 63) + 1) WHERE part = 0"
sharer_says old 'warning: standby: .*; this musterd knows schema [0-9]+, the active broker writes [0-9]+: install the newer one here, too'
sharer_stop a
sharer_says old "$older"
sharer_stop old
asked "UPDATE muster_snapshot SET data = set_byte(data, 63, get_byte(data, 63) - 1) WHERE part = 0"

# 8. A file that is a copy of this database, beside another one that is empty.
asked "CREATE DATABASE other"
shared=${right/\/postgres\?/\/other?}
said=$(timeout 20 "$musterd" --listen "$ipc" --db "$dir/a/muster.db" --shared "$shared" 2>&1) && fail "a copy seeded a database"
says "$said" 'MUSTER_E_ARGUMENT: .* has no record of muster: this broker worked with another database; give the address of that one'
shared=$right

# 9. A part of the rights: the start is told, and does not begin again. One that cannot come to its end is told to end.
asked "CREATE ROLE half LOGIN; GRANT ALL ON muster_lease, muster_batch TO half; GRANT SELECT ON muster_snapshot TO half"
shared=${right/user=*/user=half}
refused 'permission denied for table muster_snapshot'
shared=$right
asked "CREATE FUNCTION never() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(4); RETURN NEW; END';
    CREATE TRIGGER never BEFORE INSERT ON muster_snapshot FOR EACH ROW EXECUTE FUNCTION never()"
sharer_start b
sharer_says b 'cannot write a snapshot'
sharer_stop b
asked "DROP TRIGGER never ON muster_snapshot"
finish "a server that is slow, full or has no room makes a job wait, and half a database, a newer or another one is refused"
