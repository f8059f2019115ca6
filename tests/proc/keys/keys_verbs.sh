#!/bin/bash
# Each verb that asks the broker, with each kind of key: for its own job and for another, expired, revoked, of another broker,
# and without one. Each cell says whether the verb was let through, and if not, names the key and the reason.
. "$(dirname "$0")/../lib.sh"

cd "$dir"
key() { "$muster" key add "$@" --db "$db" >/dev/null || fail "no key $1"; }
for role in node operator viewer; do
    key "$role" --role "$role" --job "$job"
    key "other-$role" --role "$role" --job "other*"
done
key expired --role operator --job '*' --expires 1s
key revoked --role operator --job '*'
"$muster" key revoke revoked --db "$db" >/dev/null
"$muster" key add foreign --role operator --job '*' --db "$dir/another/muster.db" >/dev/null
broker_start

# a job that runs, and has a checkpoint
export MUSTER_KEY_FILE=$dir/node.key
options=(--step-ms 50 --save-every 10 --say-every 10)
ranks_start 1 --steps 1000000
committed_some() { [ -n "$(committed)" ]; }
await "a checkpoint" committed_some
unset MUSTER_KEY_FILE
lapsed() { "$muster" key list --db "$db" | grep -Eq '^expired .* expired '; }
await "a key to expire" lapsed

# verb, and the roles that may
cat >verbs <<END
status $job|viewer node operator
why --job $job|viewer node operator
nodes --job $job|viewer node operator
rounds --job $job|viewer node operator
round 1 --job $job|viewer node operator
checkpoints --job $job|viewer node operator
latest --job $job|viewer node operator
events --job $job|viewer node operator
tasks --job $job|viewer node operator
verify --job $job|viewer node operator
pin 1 --id cell --job $job|node operator
unpin 1 --id cell --job $job|node operator
save --job $job|operator
forget $job|operator
import checkpoints-$job --job $job|node operator
broker|
notify 0 --grace 3600 --job $job|node operator
END

refusal='key [a-z-]+ (is for|was revoked|has expired|in .* has expired)|may not send|asks for a key|does not accept the key'
ask() { # NAME KEY VERB...: what it said, and its exit code
    local name=$1 key=$2 code timeout timeouts=30

    shift 2
    # These are not answered at all: that they are refused is heard in a moment, and later on a busy machine.
    case $key in expired | revoked | foreign | -) timeouts="1 5 25" ;; esac
    [ "$key" = - ] || set -- "$@" --key "$dir/$key.key"
    for timeout in $timeouts; do
        code=0
        "$muster" "$@" --broker "$broker" --timeout "$timeout" >"$name" 2>&1 || code=$?
        ! grep -Eq "$refusal" "$name" || break
    done
    echo "exit $code" >>"$name"
}

cells=0
while IFS='|' read -r verb roles; do
    asked=()
    for key in viewer node operator other-viewer other-node other-operator expired revoked foreign -; do
        cells=$((cells + 1))
        # shellcheck disable=SC2086
        ask "cell-${verb%% *}-$key" "$key" $verb &
        asked+=($!)
        case $key in viewer | node | operator) wait "${asked[@]}" ;; esac # what they do has an order
    done
    wait "${asked[@]}"
    for key in viewer node operator other-viewer other-node other-operator expired revoked foreign -; do
        said=$(cat "cell-${verb%% *}-$key")
        case " $roles " in
        *" $key "*)
            ! grep -Eq "$refusal" <<<"$said" || fail "$verb with key $key was refused: $said"
            ! grep -q 'exit 2$' <<<"$said" || fail "$verb with key $key did not work: $said"
            ;;
        *)
            grep -Eq "$refusal" <<<"$said" || fail "$verb with key $key: $said"
            grep -Eq 'exit (3|4)$' <<<"$said" || fail "$verb with key $key: $said"
            ;;
        esac
    done
done <verbs
same "cells" "$cells" $((17 * 10))

# What was ordered is told with the key that ordered it; what was refused left nothing.
says "$(query "SELECT group_concat(text, ' | ') FROM event WHERE kind = 'order' AND job = '$job'")" \
    'key node at 127\.0\.0\.1: pin checkpoint 1 as cell' 'key operator at 127\.0\.0\.1: save' 'notify rank 0, notice '
same "orders of keys that may not" \
    "$(query "SELECT count(*) FROM event WHERE kind = 'order' AND text NOT GLOB 'key node *' AND text NOT GLOB 'key operator *'")" 0
told=$(query "SELECT id FROM notice WHERE job = '$job' LIMIT 1")
story=$("$muster" why notice "$told" --job "$job" --broker "$broker" --key viewer.key)
says "$story" 'was told by an operator \(key (node|operator) at 127\.0\.0\.1\)'
same "jobs" "$(query 'SELECT count(*) FROM job')" 1
kill -KILL "${pids[0]}"
wait "${pids[0]}" 2>/dev/null || true
finish "17 verbs, each with 10 kinds of keys: let through or refused by name, and orders are told with their key"
