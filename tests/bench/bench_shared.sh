#!/bin/bash
# bench_shared.sh DIRECTORY [ROUNDS [NODES ...]] - agreement and batches with SQLite alone and with --shared, in one run: with a
# PostgreSQL server of its own, which has its data in DIRECTORY, as the brokers have. Needs ./tools/dev build release --target benches.
set -euo pipefail
build=${BUILD_DIR:-$(dirname "$(readlink -f "$0")")/../../build/release}
directory=${1:?usage: bench_shared.sh DIRECTORY [ROUNDS [NODES ...]]} rounds=${2:-9}
nodes=("${@:3}")
[ ${#nodes[@]} -gt 0 ] || nodes=(8 64 256 1000)
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
sockets=$(mktemp -d /tmp/muster-pg.XXXXXX)
data=$(mktemp -d "$directory/muster-pg.XXXXXX")

as_postgres() { # a server refuses to run as root
    (cd / && if [ "$(id -u)" = 0 ]; then setpriv --reuid nobody --regid nogroup --clear-groups "$@"; else "$@"; fi)
}
stop() {
    as_postgres "$bin/pg_ctl" -D "$data/data" -m immediate stop >/dev/null 2>&1 || true
    rm -rf "$data" "$sockets"
}
trap stop EXIT
[ "$(id -u)" != 0 ] || chown nobody:nogroup "$sockets" "$data"
as_postgres "$bin/initdb" -D "$data/data" -A trust -U muster >/dev/null
as_postgres "$bin/pg_ctl" -D "$data/data" -l "$sockets/log" -w -o "-c listen_addresses='' -k $sockets" start >/dev/null

address="postgresql:///postgres?host=$sockets&user=muster"
BENCH_SHARED=$address "$build/tests/bench/bench_notice" "$rounds" "$directory" "${nodes[@]}"
"$build/tests/bench/bench_batches" "$address" "$directory"
