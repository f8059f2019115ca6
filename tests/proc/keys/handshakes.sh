#!/bin/bash
# Who has no key says nothing to a broker that asks for one: not with random bytes, not without encryption, not with what
# another client said before. Each such connection is closed in seconds, and `muster status` beside them is answered.
. "$(dirname "$0")/../lib.sh"

shakes=$TESTS_DIR/proc/prog_handshake
cd "$dir"
"$muster" key add all --job '*' --role operator --db "$db" >/dev/null || fail "no key"
broker_start
port=${broker##*:}
received() { broker_counted messages_received; }

# shaken WHAT TIMES BYTES: all are closed within 10 s, with so many bytes said behind which they learn nothing.
shaken() {
    local said

    said=$("$shakes" "$1" 127.0.0.1 "$port" "$2") || fail "no connection for $1"
    say "$1: $said"
    says "$said" "^$2 closed"
    holds "bytes that the broker said to $1" "$(sed 's/.* \([0-9]*\) bytes.*/\1/' <<<"$said")" -le "$3"
    holds "ms that a connection lasted with $1" "$(sed 's/.* \([0-9]*\) ms.*/\1/' <<<"$said")" -le 10000
}

before=$(received)
shaken garbage 30 64
shaken frames 30 64
shaken null 30 64
shaken plain 30 64
shaken silent 1 64
same "messages that were taken of them" "$(received)" $((before + 1))

# What a client with a key said, once more over another connection: its keys were of the first alone.
"$shakes" replay 127.0.0.1 "$port" 1 >"$dir/replay" &
replayer=$!
started+=("$replayer")
listens() { grep -q ready "$dir/replay"; }
await "the one between" listens
own=$(sed -n 's/^ready at //p' "$dir/replay")
code=0
"$muster" status nothing --broker "tcp://127.0.0.1:$own" --key all.key --timeout 5 >"$dir/said" 2>&1 || code=$?
same "exit code through the one between: $(cat "$dir/said")" "$code" 1
before=$(received)
wait "$replayer" || fail "the one between failed"
says "$(cat "$dir/replay")" '[1-9][0-9][0-9]+ bytes said again: closed'
same "messages that were taken twice" "$(received)" $((before + 1))
"$muster" status nothing --broker "$broker" --key all.key >"$dir/said" 2>&1 || code=$?
says "$(cat "$dir/said")" 'knows no job "nothing"'
finish "random bytes, a connection without encryption, and a recorded one are closed in seconds, and nothing of them is taken"
