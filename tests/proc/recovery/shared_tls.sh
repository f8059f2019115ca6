#!/bin/bash
# The address of --shared takes libpq's TLS options. A broker that must know the server's certificate does not speak to
# one with another certificate or another name, and says why. A service's file names the hosts of the address, too.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_shared.sh"

command -v openssl >/dev/null || { say "skipped: there is no openssl"; exit 77; }
postgres_start
address=127.$(($$ / 65536 + 1)).$(($$ / 256 % 256)).$(($$ % 256)) # of no other test
authority() { # NAME - a certificate of its own
    openssl req -x509 -newkey ed25519 -nodes -days 2 -subj "/CN=$1" -keyout "$dir/$1.key" -out "$dir/$1.crt" 2>"$dir/openssl.log" ||
        fail "openssl"
}
authority right
authority wrong
openssl req -newkey ed25519 -nodes -subj /CN=localhost -keyout "$postgres_dir/data/server.key" 2>>"$dir/openssl.log" |
    openssl x509 -req -days 2 -CA "$dir/right.crt" -CAkey "$dir/right.key" -CAcreateserial -out "$postgres_dir/data/server.crt" 2>>"$dir/openssl.log" ||
    fail "openssl"
[ "$(id -u)" != 0 ] || chown nobody:nogroup "$postgres_dir"/data/server.*
chmod 600 "$postgres_dir/data/server.key"
echo 'ssl = on' >>"$postgres_dir/data/postgresql.conf"
echo 'hostssl all all 127.0.0.0/8 trust' >"$postgres_dir/data/pg_hba.conf"
echo 'local all all trust' >>"$postgres_dir/data/pg_hba.conf"
postgres_options="-c listen_addresses=$address -k $postgres_dir"
postgres restart

listen_of=([a]="ipc://$dir/a.sock" [w]="ipc://$dir/w.sock")
server() { # HOST MODE AUTHORITY - the address of --shared
    printf 'postgresql://muster@%s/postgres?hostaddr=%s&sslmode=%s&sslrootcert=%s' "$1" "$address" "$2" "$dir/$3.crt"
}
sharer_waits 'certificate verify failed' "$(server localhost verify-full wrong)"
sharer_waits 'server certificate for "localhost" does not match host name "other"' "$(server other verify-full right)"
shared=$(server localhost disable right)
sharer_start w
sharer_ends w 2
says "$(cat "$dir/w.log")" 'no pg_hba.conf entry .* no encryption'
mv "$dir/w.log" "$dir/w-refused.log"

shared=$(server localhost verify-full right)
sharer_start a
sharer_is_active a
same "sessions of the broker with TLS" "$(asked "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
    WHERE application_name = 'musterd' AND ssl")" 1
says "$("$muster" status --db "$shared" 2>&1)" 'no job'
sharer_stop a

# Of a service: its first host refuses connections.
cat >"$dir/services" <<END
[fleet]
host=127.0.0.1,localhost
hostaddr=127.0.0.1,$address
port=1,5432
user=muster
dbname=postgres
sslmode=verify-full
sslrootcert=$dir/right.crt
END
export PGSERVICEFILE=$dir/services
shared='postgresql://?service=fleet'
sharer_start a
sharer_is_active a 2
sharer_stop a
sharer_waits 'definition of service "other" not found' 'postgresql://?service=other'
finish "TLS options and a service in the address of --shared"
