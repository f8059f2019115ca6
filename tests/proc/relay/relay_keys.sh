#!/bin/bash
# A broker with keys: the relay shows its own, and its ranks act with that. What its key may not say, they may not say.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_relay.sh"

key() { # NAME OPTIONS... - makes it; its file is $dir/NAME.key
    local name=$1

    shift
    "$muster" key add "$name" "$@" --db "$db" --file "$dir/$name.key" >"$dir/key.log" 2>&1 ||
        fail "muster key add: $(cat "$dir/key.log")"
}

mkdir -p "${db%/*}"
key host --job job --role node
key all --job '*' --role operator
broker_start
relays=(one)
relay_start one "$broker" --key-file "$dir/host.key"
options=(--steps 100000 --step-ms 5 --barrier 1)
relayed_start 4 --signal-rank 1 --signal-step 40
all_preempted
committed_whole "$saved"

job=other # not in the relay's key
relayed_start 1 --connect-ms 3000
await "the end of the rank of another job" rank_is_gone 0
same "jobs" "$(query "SELECT group_concat(job) FROM job")" job
says "$(cat "$(log 0)")" 'MUSTER_E_AUTH'

job=job # revoked: nobody behind the relay is heard any more
MUSTER_KEY_FILE=$dir/all.key "$muster" status --broker "$broker" >"$dir/status.log" || fail "muster status: exit code $?"
"$muster" key revoke host --db "$db" >"$dir/revoke.log" 2>&1 || fail "muster key revoke: $(cat "$dir/revoke.log")"
await "the relay to lose the broker" relay_said one 'no broker answers at'

key again --job job --role node # in the place of the revoked one, at first readable for everybody
answers() { [ "$(grep -c ' answers$' "$dir/one.log")" -ge 2 ]; }
chmod 644 "$dir/again.key"
mv "$dir/again.key" "$dir/host.key"
await "the relay to say what is wrong with its key file" relay_said one 'no broker answers at .*host.key'
chmod 600 "$dir/host.key"
await "the relay to show the key that its file has now" answers
relayed_start 4
await "the ranks behind it to train" rank_said 0 '^opened at step'
kill -KILL "${pids[@]}"
relay_stop one
not_checked=1
finish "ranks behind a relay act with the relay's key: they save, are refused for another job, and end with the key" \
    "a relay takes the key that its file has when it connects again"
