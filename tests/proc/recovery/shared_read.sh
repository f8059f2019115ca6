#!/bin/bash
# muster --db postgresql://... reads what brokers share as it reads a file (client/query/dbread_shared.c, fenced/changes.c):
# the same answers, with rights to read alone, of a replica, too. It goes on with a broker that works, and over a take-over.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_shared.sh"
. "$(dirname "$0")/../web/lib_web.sh"

refused() { # CODE PATTERN ADDRESS
    local code=0 said

    said=$("$muster" status --db "$3" 2>&1) || code=$?
    same "exit code of status --db $3" "$code" "$1"
    says "$said" "$2"
    not grep -q geheim <<<"$said" || fail "a password is told: $said"
}

saved=0
postgres_start
listen_of=([a]="ipc://$dir/a.sock" [b]="ipc://$dir/b.sock")
both=${listen_of[a]},${listen_of[b]}
at="host=$postgres_dir&user"
refused 3 'no tables of muster: give the address that musterd was started with' "$shared"
sharer_start a
sharer_is_active a
own=$dir/a/muster.db
job=done
ranks_start 2 --steps 30 --step-ms 1 --save-every 10
all_finished 30

# Each question has the same answer from there and from the file.
asked "CREATE ROLE reader LOGIN PASSWORD 'geheim'; GRANT SELECT ON muster_lease, muster_batch, muster_snapshot TO reader;
    ALTER ROLE reader SET default_transaction_read_only = on"
reader="postgresql://reader:geheim@/postgres?host=$postgres_dir"
answers() { # PLACE
    local verb

    for verb in status checkpoints rounds nodes events why latest "status --json" "events --json"; do
        # shellcheck disable=SC2086
        MUSTER_TEST_NOW=1900000000000 "$muster" $verb --job done --db "$1" 2>&1 || echo "exit $?"
    done
}
as_the_file() {
    answers "$own" | sed "s|$own|PLACE|" >"$dir/of-file"
    answers "$1" | sed "s|postgres on $postgres_dir|PLACE|" >"$dir/of-log"
    holds "lines" "$(wc -l <"$dir/of-file")" -gt 30
    diff "$dir/of-file" "$dir/of-log" || fail "the answers differ"
}
mkdir "$dir/tmp"
TMPDIR=$dir/tmp as_the_file "$reader"
same "files left behind" "$(ls -A "$dir/tmp")" ""

# A page that is open goes on: with the batches, a new snapshot, another broker, and a server that was away.
web_start --db "$reader"
shows() { get "/api/v1/jobs/$1" && grep -q "$2" <<<"$body"; }
await "the job on the page" shows done '"state": "ended"'
not grep -q geheim "$dir"/web*.log || fail "muster web tells the password"
get /
not grep -q geheim <<<"$body" || fail "the page tells the password"
job=next
ranks_start 2 --steps 30 --step-ms 1
all_finished 30
await "the next job on the page" shows next '"state": "ended"'
sharer_start b
sharer_says b "standby: musterd at .* is the active broker"
sharer_stop a
sharer_is_active b
own=$db
job=third
ranks_start 2 --steps 30 --step-ms 1
all_finished 30
await "the job after a take-over on the page" shows third '"state": "ended"'
postgres stop -m immediate
is_away() { not shows third '"state"'; }
await "the page to miss the server" is_away
postgres start
await "the page to be there again" shows third '"state": "ended"'
as_the_file "$shared"
sharer_stop b

web_stop

# The active broker ends a snapshot, and deletes what it stands for, between two questions of a reader.
asked "CREATE SEQUENCE times; CREATE FUNCTION swap() RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN
    IF nextval(''times'') > 1 THEN RETURN true; END IF;
    UPDATE muster_snapshot SET epoch = epoch + 1; UPDATE muster_lease SET snapshot_epoch = snapshot_epoch + 1; RETURN false; END';
    CREATE POLICY swap ON muster_batch FOR SELECT USING (swap()); ALTER TABLE muster_batch ENABLE ROW LEVEL SECURITY;
    ALTER ROLE reader RESET default_transaction_read_only"
answers "$reader" | sed "s|postgres on $postgres_dir|PLACE|" >"$dir/of-swapped"
holds "rows that were asked for" "$(asked "SELECT last_value FROM times")" -gt 10
asked "DROP POLICY swap ON muster_batch; ALTER TABLE muster_batch DISABLE ROW LEVEL SECURITY"
diff "$dir/of-log" "$dir/of-swapped" || fail "a snapshot that ended meanwhile makes another answer"

# What is wrong has a sentence each.
asked "CREATE ROLE guest LOGIN PASSWORD 'right'"
refused 2 'permission denied for table muster_lease' "postgresql://guest:geheim@/postgres?host=$postgres_dir"
{ echo 'local all guest scram-sha-256' && cat "$postgres_dir/data/pg_hba.conf"; } >"$dir/hba"
cat "$dir/hba" >"$postgres_dir/data/pg_hba.conf"
asked "SELECT pg_reload_conf()" >/dev/null
refused 2 'password authentication failed for user "guest"' "postgresql://guest:geheim@/postgres?host=$postgres_dir"
refused 2 'database "nowhere" does not exist' "postgresql:///nowhere?$at=muster"
refused 2 'role "nobody" does not exist' "postgresql:///postgres?$at=nobody"
refused 3 'no tables of muster' "postgresql:///template1?$at=muster"
refused 3 'Connection refused' "postgresql://x:geheim@127.0.0.1:1/postgres"
refused 2 '^muster: --db takes postgresql://HOST/DATABASE' "postgresql://a:geheim@[b/"
code=0
said=$("$muster" key list --db "$shared" 2>&1) || code=$?
same "exit code of muster key" "$code" 2
says "$said" 'keys lie beside the file of musterd --db: name that file'
asked "UPDATE muster_lease SET version = 2"
refused 3 'is of a newer musterd \(version 2\): this muster knows version 1; use the muster' "$shared"
asked "UPDATE muster_lease SET version = 1, seq = seq + 1"
refused 3 'has no batch [0-9]+: somebody deleted it, or restored only a part of the database' "$shared"
asked "UPDATE muster_lease SET seq = seq - 1; UPDATE muster_snapshot SET data = 'no database'::bytea || data"
refused 3 'does not fit its snapshot \(file is not a database\).*restore the whole of it' "$shared"
asked "DELETE FROM muster_snapshot"
refused 3 'has no snapshot: somebody deleted it' "$shared"
db=$own
finish "muster reads what brokers share as it reads a file"
