#!/bin/bash
# musterd --migrate makes the database, or brings it to this version, and ends. A role that may make tables does it once,
# and the brokers' own role cannot. While a broker is active it is refused.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_shared.sh"

postgres_start
listen_of=([a]="ipc://$dir/a.sock")
both=${listen_of[a]}
version() { query "PRAGMA user_version"; }
# migrates CODE SAYS [ARGUMENT...]
migrates() {
    local code=0 want=$1 pattern=$2 said

    shift 2
    said=$("$musterd" --migrate "$@" 2>&1) || code=$?
    same "exit code of --migrate $*" "$code" "$want"
    says "$said" "$pattern"
}

# 1. A file: a new one is made, one of an older version is brought to this one, with a copy of what it was.
migrates 0 "database $db is ready for musterd" --db "$db"
newest=$(version)
broker_start
job=alone
ranks_start 1 --steps 3
ranks_end 0
broker_stop
"$sql" --write "$db" "PRAGMA user_version = $((newest - 1))"
migrates 0 "database $db is ready for musterd" --db "$db"
same "version of the database" "$(version)" "$newest"
same "version of its copy" "$("$sql" "$db.before-v$newest" "PRAGMA user_version")" $((newest - 1))
broker_start
migrates 1 'LOCKED: database .* is in use by musterd with pid' --db "$db"
broker_stop
migrates 2 'migrate is for a broker' --relay "$broker"

# 2. A shared database gets its tables, and a broker that ran alone brings its records. Who may only write cannot make them.
asked "CREATE ROLE guest LOGIN; CREATE ROLE owner LOGIN; GRANT CREATE ON SCHEMA public TO owner"
owner=${shared/user=muster/user=owner}
shared=${shared/user=muster/user=guest}
mkdir "$dir/a"
cp "$db" "$dir/a/muster.db"
migrates 2 'permission denied for schema public' --db "$dir/o/muster.db" --shared "$shared"
both_at_once() {
    local code=0

    "$musterd" --migrate --db "$dir/p/muster.db" --shared "$owner" 2>"$dir/p.log" &
    migrates 0 'database postgres on .* is ready for musterd' --db "$dir/o/muster.db" --shared "$owner"
    wait $! || code=$?
    same "exit code of the other one" "$code" 0
}
both_at_once
asked "SET ROLE owner; GRANT SELECT, UPDATE ON muster_lease TO guest; GRANT SELECT, INSERT, DELETE ON muster_batch TO guest;
    GRANT SELECT, INSERT, UPDATE, DELETE ON muster_snapshot TO guest"
sharer_start a
sharer_is_active a
same "jobs that came with it" "$(query "SELECT job FROM job")" alone
migrates 1 'is the active broker of the shared database .*; end all brokers of this database before' --db "$dir/o/muster.db" --shared "$owner"
"$musterd" --migrate --db "$dir/o/muster.db" --shared "$owner" 2>"$dir/told.log" &
told=$!
kill -TERM $told
code=0
wait $told || code=$?
same "exit code of one that is told to end" "$code" 143

# 3. Behind a broker that was killed it waits for the end of the lease. The brokers' own files stay as they are.
kill -KILL "${broker_pids[a]}"
await "the end of a" sharer_is_gone a
migrates 0 'is ready for musterd' --db "$dir/a/muster.db" --shared "$owner"
asked "UPDATE muster_snapshot SET data = set_byte(data, 63, get_byte(data, 63) - 1) WHERE part = 0" # PRAGMA user_version
migrates 0 'the records as they were before are in' --db "$dir/b/muster.db" --shared "$owner"
same "copies of what was there before" "$(find "$dir/b" -name "db.before-v$newest" | wc -l)" 1
migrates 2 'is a copy of a shared database: give its address with --shared' --db "$dir/a/muster.db"
same "files that it left" "$(find "$dir/a" "$dir/o" "$dir/p" -name '*.migrate*' | wc -l)" 0
sharer_start a
sharer_is_active a 2
same "jobs after it" "$(query "SELECT job FROM job")" alone
sharer_stop a
migrates 1 'cannot .* in the shared database' --db "$dir/o/muster.db" --shared "${owner/$postgres_dir/$dir}"
MUSTER_MIGRATE=yes migrates 2 'MUSTER_MIGRATE: each start would end at once' --db "$db"
finish "--migrate makes a file and a shared database and brings an older one to this version; it is refused while a broker \
is active"
