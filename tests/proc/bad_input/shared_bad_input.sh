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

# Not there yet, or a wrong password: it stays a standby, says why, and goes on when that is mended.
right=$shared
for wrong in "postgresql:///nowhere?host=$postgres_dir&user=muster" "postgresql:///postgres?host=$postgres_dir&user=nobody" \
    'postgresql://127.0.0.1:1/postgres'; do
    shared=$wrong
    sharer_start w
    sharer_says w 'standby, not active: cannot .* in the shared database'
    sharer_stop w
    mv "$dir/w.log" "$dir/w-$RANDOM.log"
done
says "$(cat "$dir"/w-*.log)" 'database "nowhere" does not exist' 'role "nobody" does not exist' 'Connection refused'
shared=$right

# Records that are in one file alone.
listen=$ipc db=$dir/own.db
broker_start
broker_stop
sharer_start a
sharer_is_active a
sharer_stop a
refused 'has records of its own, and the shared database .* others.*name another one with --db' --db "$dir/own.db" --shared "$shared"
holds "they are kept" -s "$dir/own.db"

# Who ran alone for a while has records of its own again.
cp "$dir/a/muster.db" "$dir/alone.db"
db=$dir/alone.db
broker_start
broker_stop
refused 'has records of its own' --db "$dir/alone.db" --shared "$shared"

# A role without rights, a replica, a newer musterd, a log with a hole.
asked "CREATE ROLE reader LOGIN; GRANT SELECT ON muster_lease TO reader" >/dev/null
refused 'refuses to take the lease: .*permission denied for table muster_lease' --db "$dir/r.db" \
    --shared "${shared/user=muster/user=reader}"
refused 'refuses to take the lease: .*read-only transaction; it is a replica: name the primary' --db "$dir/r.db" \
    --shared "$shared&options=-cdefault_transaction_read_only%3Don"
asked "UPDATE muster_lease SET version = 2"
refused 'is of a newer musterd \(version 2\): this one knows version 1' --db "$dir/r.db" --shared "$shared"
asked "UPDATE muster_lease SET version = 1, seq = seq + 1"
refused 'has no batch [0-9]+: somebody deleted it, or put a part of the database back' --db "$dir/r.db" --shared "$shared"
asked "UPDATE muster_lease SET seq = seq - 1"
sharer_start a
sharer_is_active a 2
sharer_stop a
db=$dir/own.db
finish "a wrong address, password, role, replica or database of --shared is said, and nothing is written over"
