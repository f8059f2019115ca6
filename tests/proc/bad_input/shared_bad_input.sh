#!/bin/bash
# What can be wrong with --shared is said, by name, and nothing is written over.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_shared.sh"

postgres_start
refused() { # PATTERN OPTIONS... - musterd ends by itself
    local pattern=$1 said code=0

    shift
    said=$(timeout 20 "$musterd" --listen "$ipc" "$@" 2>&1) || code=$?
    holds "exit code" "$code" -ge 1 -a "$code" -le 2
    says "$said" "$pattern"
}

refused 'takes postgresql://HOST/DATABASE.*cannot be read' --db "$dir/x.db" --shared 'host=a port'
holds "no database is made" ! -e "$dir/x.db"

# What time does not mend ends the start, in a list only if all hosts say so.
right=$shared
asked "CREATE ROLE guest LOGIN PASSWORD 'right'"
{ echo 'local all guest scram-sha-256' && cat "$postgres_dir/data/pg_hba.conf"; } >"$dir/hba"
cat "$dir/hba" >"$postgres_dir/data/pg_hba.conf"
asked "SELECT pg_reload_conf()" >/dev/null
refused 'database "nowhere" does not exist' --db "$dir/x.db" --shared "postgresql:///nowhere?host=$postgres_dir&user=muster"
refused 'role "nobody" does not exist' --db "$dir/x.db" --shared "postgresql:///postgres?host=$postgres_dir&user=nobody"
refused 'password authentication failed for user "guest"' --db "$dir/x.db" \
    --shared "postgresql://guest:wrong@/postgres?host=$postgres_dir"
refused 'has an @ in it: in a password write %40' --db "$dir/x.db" --shared "postgresql://guest:p@ss@host/postgres"
holds "no database is made" ! -e "$dir/x.db"

# What may pass makes a standby, which says why, and goes on when that is mended.
sharer_waits 'Connection refused' 'postgresql://127.0.0.1:1/postgres'
sharer_waits 'Connection refused.*password authentication failed' "postgresql://guest:wrong@/postgres?host=127.0.0.1,$postgres_dir&port=1,5432"
asked "ALTER ROLE guest CONNECTION LIMIT 0"
sharer_waits 'too many connections for role "guest"' "postgresql://guest:right@/postgres?host=$postgres_dir"
sharer_waits 'takes no writes now: it is a replica, or read-only' "$right&options=-cdefault_transaction_read_only%3Don"

# The same refusals in a standby's life, and in the active broker's, are no end of it.
shared="postgresql://guest:right@/postgres?host=$postgres_dir"
asked "ALTER ROLE guest CONNECTION LIMIT -1; GRANT CREATE ON SCHEMA public TO guest"
listen=$ipc
sharer_start g
sharer_is_active g
listen_of=([h]="ipc://$dir/h.sock")
sharer_start h
sharer_says h 'standby: musterd at .* is the active broker'
asked "ALTER ROLE guest PASSWORD 'other'; SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'guest'" >/dev/null
tries() { [ "$(grep -c 'password authentication failed for user "guest"' "$postgres_dir/server.log")" -ge $((tried + 6)) ]; }
tried=$(grep -c 'password authentication failed for user "guest"' "$postgres_dir/server.log")
await "both to be refused, some times" tries
asked "ALTER ROLE guest PASSWORD 'right'"
is_held() { [ -n "$(asked "SELECT owner FROM muster_lease WHERE ends > clock_timestamp()")" ]; }
await "one of them to be active" is_held
sharer_stop h
sharer_stop g
asked "DROP TABLE muster_lease, muster_batch, muster_snapshot"
shared=$right

# Records that are in one file alone.
listen=$ipc db=$dir/own.db job=own saved=0 options=()
broker_start
ranks_start 1 --steps 3 --step-ms 1
all_finished 3
broker_stop
sharer_start a
sharer_is_active a
sharer_stop a
refused 'has records of its own, and the shared database .* has others.*name another file with --db' --db "$dir/own.db" --shared "$shared"
holds "they are kept" -s "$dir/own.db"
cp "$dir/own.db" "$dir/tasks.db" # of a job that has tasks and no more
python3 -c 'import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as db:
    db.execute("DELETE FROM job")
    db.execute("DELETE FROM host")
    columns = [(row[1], row[2]) for row in db.execute("PRAGMA table_info(task_queue)")]
    db.execute(f"INSERT INTO task_queue ({chr(44).join(name for name, _ in columns)}) VALUES ({chr(44).join(chr(63) * len(columns))})",
        [1 if kind == "INTEGER" else b"" if kind == "BLOB" else "x" for _, kind in columns])' "$dir/tasks.db"
refused 'has records of its own' --db "$dir/tasks.db" --shared "$shared"

# Who ran alone for a while has records of its own again.
cp "$dir/a/muster.db" "$dir/alone.db"
db=$dir/alone.db job=alone
broker_start
ranks_start 1 --steps 3 --step-ms 1
all_finished 3
broker_stop
refused 'has records of its own' --db "$dir/alone.db" --shared "$shared"

# A copy that is empty, cut short or damaged has no records: it is kept under another name.
spoil() { case $1 in empty) : >"$2" ;; short) truncate -s 3000 "$2" ;; noise) head -c 9000 /dev/urandom >"$2" ;; esac; }
for how in empty short noise; do
    mkdir "$dir/$how"
    cp "$dir/a/muster.db" "$dir/$how/muster.db"
    spoil $how "$dir/$how/muster.db"
    sharer_start $how
    sharer_is_active $how
    says "$(cat "$dir/$how.log")" 'muster.db has no records that can be read .* it is .*muster.db.damaged-[0-9]+ now'
    sharer_stop $how
    same "files that were kept" "$(find "$dir/$how" -name 'muster.db.damaged-*' | wc -l)" 1
done

# A file that another musterd works with is left alone, with its log.
cp "$dir/a/muster.db" "$dir/busy.db"
db=$dir/busy.db
broker_start
refused 'busy.db is in use by (another musterd|musterd with pid)' --db "$dir/busy.db" --shared "$shared"
holds "its log is there" -e "$dir/busy.db-wal"
broker_stop

# A role without rights, a newer musterd, a log with a hole.
asked "CREATE ROLE reader LOGIN; GRANT SELECT ON muster_lease TO reader" >/dev/null
refused 'refuses to take the lease: .*permission denied for table muster_lease' --db "$dir/r.db" \
    --shared "${shared/user=muster/user=reader}"
asked "CREATE ROLE least LOGIN; GRANT SELECT, UPDATE ON muster_lease TO least; GRANT SELECT, INSERT, DELETE ON muster_batch TO least;
    GRANT SELECT, INSERT, UPDATE, DELETE ON muster_snapshot TO least"
shared=${right/user=muster/user=least}
sharer_start least
sharer_is_active least
sharer_stop least
shared=$right
asked "UPDATE muster_lease SET version = 2"
refused 'is of a newer musterd \(version 2\): this one knows version 1' --db "$dir/r.db" --shared "$shared"
asked "UPDATE muster_lease SET version = 1, seq = seq + 1"
refused 'has no batch [0-9]+: somebody deleted it, or restored only a part of the database' --db "$dir/r.db" --shared "$shared"
asked "UPDATE muster_lease SET seq = seq - 1"
sharer_start a
sharer_is_active a 2
sharer_stop a
db=$dir/own.db
finish "a wrong address, password, role, replica or database of --shared is said, and nothing is written over"
