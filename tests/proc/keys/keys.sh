#!/bin/bash
# Keys: over TCP a broker that has keys lets in those on its list, each for its own jobs and its role, and nobody else.
. "$(dirname "$0")/../lib.sh"

listener=$TESTS_DIR/proc/prog_listen
cd "$dir"

# key NAME OPTIONS... - in NAME.key
key() { "$muster" key add "$@" --db "$db" >/dev/null || fail "no key $1"; }

# refused NAME STATUS TEXT VERB... - with that key (- for none) the verb ends so and says so.
refused() {
    local name=$1 status=$2 text=$3 code=0 said

    shift 3
    [ "$name" = - ] || set -- "$@" --key "$dir/$name.key"
    said=$("$muster" "$@" --broker "$broker" --timeout 1 2>&1) || code=$?
    same "exit code of muster $*: $said" "$code" "$status"
    says "$said" "$text"
}

# --- without keys nobody outside is listened to
code=0
"$musterd" --db "$db" --listen tcp://0.0.0.0:7700 >"$dir/said" 2>&1 || code=$?
same "musterd's exit code" "$code" 2
says "$(cat "$dir/said")" 'has no keys' "muster key add NAME --job JOB --db $db" "musterd --db $db --listen tcp://0.0.0.0:7700"
code=0
"$musterd" --db "$db" --listen tcp://0.0.0.0:7700 --insecure >"$dir/said" 2>&1 || code=$?
same "musterd's exit code with --insecure" "$code" 2
says "$(cat "$dir/said")" 'insecure is gone.*muster key add'

# --- the list
key own --job "$job"
key all --job '*' --role operator
key sees --job "$job*" --role viewer
key other --job other
key short --job "$job" --expires 1s
key gone --job "$job" --role operator
for file in own.key "$db.key" "$db.keys"; do
    same "mode of $file" "$(stat -c %a "$file")" 600
done
"$muster" key revoke gone --db "$db" >/dev/null
says "$("$muster" key list --db "$db")" 'own +node +job +good +never' 'gone +operator +job +revoked'
says "$("$muster" key list --db "$db" --json | tr -d '\n ')" '"name":"gone","role":"operator","jobs":"job","state":"revoked"'
shown=$("$muster" key show own.key)
says "$shown" 'jobs +job'
! grep -qF "$(sed -n 's/^secret = //p' own.key)" <<<"$shown" || fail "the secret is shown"
if "$muster" key add own --job x --db "$db" --file again.key 2>"$dir/said"; then fail "two keys have one name"; fi
says "$(cat "$dir/said")" 'there is a key own already'
[ ! -e again.key ] || fail "a key that is not on the list was written"

said=$("$muster" key rotate other other-2 --db "$db" --expires 1h)
says "$said" 'other-2 is in other-2.key: role node, jobs other' 'The old key other counts until'
says "$("$muster" key list --db "$db")" 'other +node +other +good +[0-9]' 'other-2 +node +other +good +never'
if "$muster" key rotate gone gone-2 --db "$db" 2>"$dir/said"; then fail "a revoked key was rotated"; fi
says "$(cat "$dir/said")" 'lists no key gone that counts'

# --- what is wrong with a key is said with what to do
for jobs in 'a b' '*x' '../up' ''; do
    if "$muster" key add odd --job "$jobs" --db "$db" 2>"$dir/said"; then fail "a key for jobs \"$jobs\""; fi
    says "$(cat "$dir/said")" 'is no job.s name, nor the begin of one|say for which job|needs a value'
done
if "$muster" key add odd --job x --expires 36501d --db "$db" 2>"$dir/said"; then fail "a key for 100 years and a day"; fi
says "$(cat "$dir/said")" 'at most 36500d, not "36501d"'
says "$("$muster" key add last --job x --expires 172800s --db "$dir/alone/muster.db")" 'last.key'
says "$("$muster" key revoke last --db "$dir/alone/muster.db")" 'No key is left that counts: nobody is let in over TCP'
"$muster" key add later --job "$job" --db "$db" >/dev/null
year=31536000000
sed -i "s/^\(later .* \)- - -\$/\1$(($(date +%s%3N) + year)) - -/" "$db.keys"
says "$("$muster" key list --db "$db")" 'later +node +job +not yet'

broker_start
events=$(sed -n 2p "$dir/port")
says "$(cat "$dir/musterd.log")" 'clients need a key'

# --- who is refused, and what it is told
refused - 4 'asks for a key.*muster key add.*MUSTER_KEY_FILE' status
"$muster" key add own --job "$job" --db "$dir/another/muster.db" --file foreign.key >/dev/null
refused foreign 3 'does not accept the key' status "$job"
refused gone 3 'does not accept the key' status "$job"
refused later 3 'does not accept the key.*not valid yet' status "$job"
refused other 4 "key other is for jobs other, not for job $job" status "$job"
refused sees 4 'name one with --job' status
refused all 1 'no job' status nothing
chmod 640 other.key
refused other 3 'other users can read key file .*other.key.*chmod 600' status "$job"
chmod 600 other.key
head -c -20 own.key >cut.key && chmod 600 cut.key
refused cut 3 'key file .*cut.key: .*(damaged|missing)' status "$job"
refused nowhere 3 'cannot read key file' status "$job"
expired() { "$muster" key list --db "$db" | grep -Eq '^short .* expired'; }
await "a key to expire" expired
refused short 3 'key short in .* has expired' status "$job"

# --- a job with its key saves on a notice and goes on; a stranger with another key hears and commands nothing of it
mkfifo hold && exec 9<>hold
"$listener" "$events" own.key "$job" <hold >own.heard 2>&1 &
started+=($!)
"$listener" "$events" sees.key "$job" <hold >sees.heard 2>&1 &
started+=($!)
for name in other foreign gone -; do
    for topic in "$job" ''; do
        [ "$name" = - ] || name=${name%.key}.key
        "$listener" "$events" "$name" "$topic" <hold >"stranger-${name%.key}-${topic:-all}.heard" 2>&1 &
        started+=($!)
    done
done
export MUSTER_KEY_FILE=$dir/own.key
options=(--step-ms 5 --barrier 1 --say-every 10)
ranks_start 3 --steps 100000
await "steps" rank_said 0 'step 40'
unset MUSTER_KEY_FILE
refused other 4 'not for job' notify 1 --job "$job"
refused sees 4 'viewer, who may not send NOTICE' notify 1 --job "$job"
refused sees 4 'viewer, who may not send SAVE_NOW' save --job "$job"
refused own 4 'node, who may not send SAVE_NOW' save --job "$job"
refused own 4 'node, who may not send FORGET' forget "$job"
"$muster" save --wait --job "$job" --broker "$broker" --key all.key >/dev/null || fail "an operator may save"
says "$("$muster" status "$job" --broker "$broker" --key sees.key)" "job $job: running"
refused own 4 'only a key for all jobs may ask about the broker itself' broker
told=$("$muster" broker --broker "$broker" --key all.key)
says "$told" 'asks for keys' "1 job runs in 3 processes" '[1-9][0-9]*  messages that their key may not send' \
    '[1-9][0-9]*  subscriptions to jobs that their key may not hear'
"$muster" notify 1 --job "$job" --broker "$broker" --key all.key >/dev/null || fail "an operator may notify"
all_preempted
committed_whole "$saved"
same "lost ranks" "$(query "SELECT count(*) FROM event WHERE kind = 'node lost'")" 0
await "the job's own listener" grep -q "heard $job" own.heard
await "the viewer's listener" grep -q "heard $job" sees.heard
for heard in stranger-*.heard; do
    same "lines in $heard" "$(grep -c heard "$heard" || true)" 0
done

# --- a rank with another job's key, or with none, is told why
world=1 pids=() launch=$((launch + 1))
MUSTER_KEY_FILE=$dir/other.key rank_start 0
ranks_end 1
says "$(error_of 0)" 'status=MUSTER_E_AUTH' "key other is for jobs other, not for job $job"
launch=$((launch + 1))
rank_start 0 --connect-ms 700
ranks_end 1
says "$(error_of 0)" 'status=MUSTER_E_AUTH' 'asks for a key'

# --- a key that is revoked while its job runs: nobody of it is heard any more, its events neither
export MUSTER_KEY_FILE=$dir/own.key
ranks_start 3 --steps 100000
await "steps" rank_said 0 "at step $((saved / 10 * 10 + 20))"
unset MUSTER_KEY_FILE
"$muster" key revoke own --db "$db" >/dev/null
ranks_end 1
says "$(error_of 0)" 'status=MUSTER_E_AUTH' 'key own was revoked'
await "the log to tell of the key" grep -q 'info: key own was revoked' "$dir/musterd.log"
lost_all() { [ "$(query "SELECT count(*) FROM node WHERE job = '$job' AND state = 'joined' OR state = 'restored'")" = 0 ]; }
await "the broker to count them as lost" lost_all
lines=$(grep -c heard own.heard)
key again --job "$job"
MUSTER_KEY_FILE=$dir/again.key ranks_start 3 --steps $((saved + 40))
all_finished $((saved + 40))
says "$(cat "$dir/musterd.log")" "info: key again was added to the list: role node, jobs $job"
same "messages that the revoked key heard of the next launch" "$(grep -c heard own.heard)" "$lines"

# --- a list that is damaged while it is used lets nobody in, and is said
cp "$db.keys" list && echo 'half a line' >>"$db.keys"
await "the log to say so" grep -q 'nobody is let in until the list of keys is mended' "$dir/musterd.log"
refused all 3 'does not accept the key' status "$job"
cp list "$db.keys"
let_in() { "$muster" status "$job" --broker "$broker" --key all.key --timeout 1; }
await "the mended list to count" let_in
chmod 620 "$db.keys"
says_mode() { grep -q "chmod 600 $db.keys" "$dir/musterd.log"; }
await "the log to say how to mend its mode" says_mode
chmod 600 "$db.keys" # and nothing else: what was said mends it
await "the list to count again" let_in
broker_stop

# --- who has a list and no key of its own does not start
mv "$db.key" away
code=0
"$musterd" --db "$db" --listen 'tcp://127.0.0.1:*' >"$dir/said" 2>&1 || code=$?
same "musterd's exit code" "$code" 1
says "$(cat "$dir/said")" "the broker's own key .* is missing"

# --- nor who has a key and no list of those it lets in: on this host it would ask nobody for one
mv away "$db.key"
mv "$db.keys" away
code=0
"$musterd" --db "$db" --listen 'tcp://127.0.0.1:*' >"$dir/said" 2>&1 || code=$?
same "musterd's exit code" "$code" 1
says "$(cat "$dir/said")" "$db.keys is gone, or empty, and this broker has a key: put the list back"

finish "a broker on TCP lets in the keys on its list, each for its role and jobs; a revoked one ends its launch"
