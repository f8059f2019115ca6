# lib_shared.sh - sourced behind lib.sh: a PostgreSQL server of this test's own, and brokers that share a database in it.
# Each broker has a name, its own copy of the database and its own log.

postgres_bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1)
postgres_dir=
declare -A broker_pids

# A server refuses to run as root.
as_postgres() {
    if [ "$(id -u)" = 0 ]; then setpriv --reuid nobody --regid nogroup --clear-groups "$@"; else "$@"; fi
}

postgres_start() {
    [ -n "$postgres_bin" ] || { say "skipped: no PostgreSQL server is installed (postgresql)"; exit 77; }
    postgres_dir=$(mktemp -d /tmp/muster-pg.XXXXXX) # not in TMPDIR: it is a short path of an address
    [ "$(id -u)" != 0 ] || chown nobody:nogroup "$postgres_dir"
    trap 'status=$?; [ "$BASHPID" != "$cleaner" ] || postgres_stop; clean_up $status' EXIT
    (cd / && as_postgres "$postgres_bin/initdb" -D "$postgres_dir/data" -A trust -U muster) >"$dir/initdb.log" 2>&1 ||
        fail "initdb"
    postgres start
    shared="postgresql:///postgres?host=$postgres_dir&user=muster"
}

# postgres COMMAND... - of pg_ctl; returns when the server is ready, or gone.
postgres() {
    (cd / && as_postgres "$postgres_bin/pg_ctl" -D "$postgres_dir/data" -l "$postgres_dir/server.log" -w \
        -o "${postgres_options:--c listen_addresses='' -k $postgres_dir}" "$@") >>"$dir/postgres.log" 2>&1 || fail "pg_ctl $*"
}

# shared_for DB - the database that is shared by those whose copy this is.
shared_for() {
    local name

    name=m$(md5sum <<<"$1" | cut -c 1-16)
    asked "CREATE DATABASE $name" >/dev/null 2>&1 || true # it is there
    printf 'postgresql:///%s?host=%s&user=muster\n' "$name" "$postgres_dir"
}

postgres_stop() {
    [ -z "$postgres_dir" ] || {
        (cd / && as_postgres "$postgres_bin/pg_ctl" -D "$postgres_dir/data" -m immediate stop) >/dev/null 2>&1 || true
        rm -rf "$postgres_dir"
    }
    postgres_dir=
}

# asked SQL - what the shared database answers.
asked() { as_postgres "$postgres_bin/psql" -XAtq -h "$postgres_dir" -U muster postgres -c "$1"; }

# sharer_start NAME [NAME=VALUE...]
sharer_start() {
    local name=$1

    shift
    env "$@" "$musterd" --db "$dir/$name/muster.db" --listen "${listen_of[$name]:-$listen}" --shared "$shared" \
        ${broker_options[@]+"${broker_options[@]}"} </dev/null >>"$dir/$name.log" 2>&1 &
    broker_pids[$name]=$!
    started+=($!)
}
declare -A listen_of
both= # the addresses of all of them, for the ranks

times_said() { grep -cE -- "$2" "$dir/$1.log" || true; }
has_said() { [ "$(times_said "$1" "$2")" -ge "$3" ]; }
# sharer_says NAME PATTERN [TIMES] - it is awaited.
sharer_says() { await "$1 to say \"$2\"" has_said "$1" "$2" "${3:-1}"; }

# sharer_is_active NAME [TIMES] - it has taken over that often; the test's questions go to its copy.
sharer_is_active() {
    sharer_says "$1" 'musterd [^ ]* is ready' "${2:-1}"
    db=$dir/$1/muster.db broker=${both:-$listen}
}

sharer_is_gone() { not is_ours "${broker_pids[$1]}"; }
sharer_ends() { # NAME CODE
    local code=0

    await "the end of $1" sharer_is_gone "$1"
    wait "${broker_pids[$1]}" 2>/dev/null || code=$?
    same "exit code of $1" "$code" "$2"
}
sharer_stop() { kill -TERM "${broker_pids[$1]}" && sharer_ends "$1" 0; }

# sharer_waits PATTERN ADDRESS - a broker that is given this address is a standby, and says why.
sharer_waits() {
    shared=$2
    sharer_start w
    sharer_says w "standby, not active: cannot .* in the shared database.*$1"
    sharer_stop w
    mv "$dir/w.log" "$dir/w-$RANDOM.log"
}
