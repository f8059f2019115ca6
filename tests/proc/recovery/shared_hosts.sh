#!/bin/bash
# Some hosts of --shared are dark, are replicas, or have a name that no server knows: the broker finds the one that
# takes writes, and keeps its lease when it loses the connection to it. A replica that is promoted is found, too.
if [ -z "${INSIDE_NAMES:-}" ]; then # no name server answers here, and it is nobody else's
    for way in 'unshare --net --mount' 'unshare --user --map-root-user --net --mount'; do
        # shellcheck disable=SC2086
        ! $way true 2>/dev/null || INSIDE_NAMES=1 exec $way bash "$0" "$@"
    done
    INSIDE_NAMES=0
fi
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_shared.sh"
[ "$INSIDE_NAMES" = 1 ] || { say "skipped: this user cannot make a network namespace"; exit 77; }

ip link set lo up || { say "skipped: there is no ip (package iproute2)"; exit 77; }
echo 'nameserver 127.0.0.1' >"$dir/resolv.conf"
mount --bind "$dir/resolv.conf" /etc/resolv.conf
# It takes connections and questions about names, and never answers.
python3 -c '
import socket
tcp = socket.create_server(("127.0.0.1", 5433))
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("127.0.0.1", 53))
open("'"$dir"'/dark", "w").close()
kept = []
while True:
    kept.append(tcp.accept())
' </dev/null >"$dir/dark.log" 2>&1 &
started+=($!)
await "the dark host" test -e "$dir/dark"

postgres_start
listen_of=([a]="ipc://$dir/a.sock" [w]="ipc://$dir/w.sock")
epoch() { asked "SELECT epoch FROM muster_lease"; }
renewed() { asked "SELECT ends > '$1' FROM muster_lease" | grep -q t; }
cut() {
    local ends

    asked "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'musterd'" >/dev/null
    ends=$(asked "SELECT ends FROM muster_lease")
    await "the lease to be renewed" renewed "$ends"
}

# Of each list the last one answers. Where the broker was cut off it does not begin with those that are dark.
for dark in 127.0.0.1 nowhere.example 127.0.0.1,nowhere.example; do
    ports=5433${dark//[^,]/}
    [ "$ports" = 5433 ] || ports=5433,5433
    shared="postgresql:///postgres?host=$dark,$postgres_dir&port=$ports,5432&user=muster"
    sharer_start a
    sharer_is_active a
    at=$(epoch)
    cut
    cut
    same "the epoch, with $dark before it" "$(epoch)" "$at"
    sharer_stop a
    rm "$dir/a.log"
done

# A replica before the primary in the list. Alone it makes a standby that says why.
as_postgres "$postgres_bin/pg_basebackup" -h "$postgres_dir" -U muster -D "$postgres_dir/replica" -R -c fast 2>"$dir/replica.log" ||
    fail "pg_basebackup"
replica() {
    (cd / && as_postgres "$postgres_bin/pg_ctl" -D "$postgres_dir/replica" -l "$postgres_dir/replica.log" -w \
        -o "-c listen_addresses='' -c port=5434 -k $postgres_dir" "$@") >>"$dir/replica.log" 2>&1 || fail "pg_ctl $* of the replica"
}
replica start
shared="postgresql:///postgres?host=$postgres_dir&port=5434&user=muster"
sharer_start w
sharer_says w 'standby, not active: cannot .* takes no writes now: it is a replica'
shared="postgresql:///postgres?host=$postgres_dir,$postgres_dir&port=5434,5432&user=muster"
sharer_start a
sharer_is_active a
has_all() { [ "$(asked "SELECT count(*) FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()")" = 1 ]; }
await "the replica to have all" has_all
sharer_stop a
await "the replica to have all" has_all
postgres stop -m immediate
replica promote
sharer_is_active w
sharer_stop w
replica stop -m immediate
finish "a dark host, a name that no server knows, and a replica in the list of --shared"
