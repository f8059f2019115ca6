#!/bin/bash
# Three PostgreSQL servers under Patroni and etcd, synchronous replication, two brokers. The primary is lost at once and for
# good while a save is being written. Another server is promoted, and the round that was open ends committed, once.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_shared.sh"

for program in etcd patroni; do
    command -v $program >/dev/null || { say "skipped: $program is not installed (etcd-server, patroni)"; exit 77; }
done
[ -n "$postgres_bin" ] || { say "skipped: no PostgreSQL server is installed (postgresql)"; exit 77; }

servers='n1 n2 n3'
declare -A port_of rest_of patroni_pids
cluster=$(mktemp -d /tmp/muster-pg.XXXXXX)
[ "$(id -u)" != 0 ] || chown nobody:nogroup "$cluster"
cluster_stop() {
    local name

    [ -z "${etcd_pid:-}" ] || kill -KILL "$etcd_pid" 2>/dev/null || true
    for name in "${!patroni_pids[@]}"; do server_lost "$name"; done
    rm -rf "$cluster"
}
trap 'status=$?; [ "$BASHPID" != "$cleaner" ] || cluster_stop; clean_up $status' EXIT

free_ports() { # COUNT
    python3 - "$1" <<'END'
import socket, sys
held = [socket.socket() for _ in range(int(sys.argv[1]))]
for one in held:
    one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in held))
END
}
read -r etcd_port etcd_peers port_of[n1] port_of[n2] port_of[n3] rest_of[n1] rest_of[n2] rest_of[n3] < <(free_ports 8)

etcd_start() {
    (cd / && as_postgres etcd --data-dir "$cluster/etcd" --log-level error \
        --listen-client-urls "http://127.0.0.1:$etcd_port" --advertise-client-urls "http://127.0.0.1:$etcd_port" \
        --listen-peer-urls "http://127.0.0.1:$etcd_peers" --initial-advertise-peer-urls "http://127.0.0.1:$etcd_peers" \
        --initial-cluster "default=http://127.0.0.1:$etcd_peers") </dev/null >"$dir/etcd.log" 2>&1 &
    etcd_pid=$!
}

server_start() { # NAME - its first start makes the cluster, or a copy of the primary
    cat >"$dir/$1.yml" <<END
scope: muster
name: $1
log: {level: INFO}
restapi: {listen: "127.0.0.1:${rest_of[$1]}", connect_address: "127.0.0.1:${rest_of[$1]}"}
etcd3: {hosts: "127.0.0.1:$etcd_port"}
bootstrap:
  dcs: {ttl: 20, loop_wait: 1, retry_timeout: 3, synchronous_mode: true, postgresql: {parameters: {max_connections: 30}}}
  initdb: [{encoding: UTF8}, {auth: trust}]
  pg_hba: ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust", "local all all trust"]
postgresql:
  listen: 127.0.0.1:${port_of[$1]}
  connect_address: 127.0.0.1:${port_of[$1]}
  data_dir: $cluster/$1
  bin_dir: $postgres_bin
  pgpass: $cluster/$1.pgpass
  authentication: {superuser: {username: muster, password: m}, replication: {username: copies, password: c}}
  parameters: {unix_socket_directories: "$cluster"}
END
    (cd / && HOME=$cluster as_postgres patroni "$dir/$1.yml") </dev/null >"$dir/$1.log" 2>&1 &
    patroni_pids[$1]=$!
}

# As the loss of its machine: nothing of it ends by itself.
server_lost() { # NAME
    local children

    pkill -KILL -P "${patroni_pids[$1]}" 2>/dev/null || true
    kill -KILL "${patroni_pids[$1]}" 2>/dev/null || true
    if read -r postmaster 2>/dev/null <"$cluster/$1/postmaster.pid"; then
        children=$(pgrep -P "$postmaster" || true)
        # shellcheck disable=SC2086 # each is a number
        kill -KILL "$postmaster" $children 2>/dev/null || true
    fi
    unset "patroni_pids[$1]"
}

shared="postgresql://muster@127.0.0.1:${port_of[n1]},127.0.0.1:${port_of[n2]},127.0.0.1:${port_of[n3]}/postgres"
shared+='?target_session_attrs=read-write&connect_timeout=3'
asked() { as_postgres "$postgres_bin/psql" -XAtq "$shared" -c "$1" 2>>"$dir/psql.log"; } # the primary
has_copies() { [ "$(asked "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'")" = "$1" ]; }
is_synchronous() { [ "$(asked "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'")" = 1 ]; }
primary() {
    local name port

    port=$(asked "SELECT inet_server_port()") || return 1
    for name in $servers; do [ "${port_of[$name]}" != "$port" ] || printf '%s\n' "$name"; done
}
has_primary() { [ -n "$(primary)" ]; }

chmod a+rx "$dir"
etcd_start
server_start n1
await "the first server" has_primary
server_start n2
server_start n3
await "two copies" has_copies 2
await "synchronous replication" is_synchronous
lost=$(primary)
say "the servers are ready after $SECONDS s, $lost is the primary"

gate=$dir/gate
listen_of=([a]="ipc://$dir/a.sock" [b]="ipc://$dir/b.sock")
both=${listen_of[a]},${listen_of[b]}
options=(--steps 4000 --barrier 1 --save-fn 1 --save-gate "$gate" --signal-rank 1)
job=promoted
rounds() { query "SELECT count(*) FROM event WHERE job = '$job' AND kind = '$1'"; }
is_decided() { [ 0 != "$(rounds decision)" ]; }
: >"$gate" # a save waits until it is gone
sharer_start a
sharer_is_active a
sharer_start b
sharer_says b 'standby: musterd at .* is the active broker'
ranks_start 2 --step-ms 20 --signal-step 100
await "the decision" is_decided
since=$(now_ms)
server_lost "$lost"
await "another primary" has_primary
holds "the primary that was lost is the primary no more: $(primary)" "$(primary)" != "$lost"
promoted=$(now_ms)
is_active() { [ -n "$(asked 'SELECT owner FROM muster_lease WHERE ends > clock_timestamp()')" ]; }
await "an active broker" is_active
say "a new primary after $((promoted - since)) ms, an active broker after $(($(now_ms) - since)) ms"
rm "$gate"
all_preempted
case $(asked 'SELECT owner FROM muster_lease') in
*"process ${broker_pids[b]} on"*) db=$dir/b/muster.db ;;
esac
committed_whole 100
same "decisions of the round" "$(rounds decision)" 1
same "its commits" "$(rounds commit)" 1
ranks_start 2 --step-ms 1
all_finished 4000
finish "a shared database whose primary is lost during a save goes on at a promoted server, and the round is committed once"
