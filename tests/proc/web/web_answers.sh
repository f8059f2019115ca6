#!/bin/bash
# `muster web` of a database: the documents are those of the verbs, pages are tables without a script, what comes from
# outside is escaped, and what is not there, not allowed or not understood is said.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib_web.sh"

export MUSTER_TEST_NOW=1767614463000 # DB_NOW of the fixture
"$rows" hostile "$dir/hostile.db"
web_start --db "$dir/hostile.db"

# --- each document is what the verb prints
document() { # PATH VERB...
    local path=$1
    shift
    "$muster" "$@" --json --db "$dir/hostile.db" >"$dir/verb.json"
    gets 200 "/api/v1/$path"
    says "$head" '^content-type: application/json$'
    same "$path" "$body" "$(cat "$dir/verb.json")"
}
document jobs status --all
document jobs/words status words
document jobs/words/nodes nodes --job words
document 'jobs/words/nodes?generation=1' nodes --job words --generation 1
document jobs/words/rounds rounds --job words
document jobs/words/rounds/4 round 4 --job words
document jobs/words/checkpoints checkpoints --all --job words
document jobs/words/latest latest --job words
document jobs/words/events events --job words
document 'jobs/words/events?since=10' events --job words --since 10
document jobs/words/why why --job words
document jobs/words/rounds/4/why why round 4 --job words
document jobs/words/tasks tasks --job words

# --- pages: whole without a script, and no text of a job is a part of the page
for path in / /jobs/words /jobs/words/ranks /jobs/words/rounds /jobs/words/rounds/4 /jobs/words/checkpoints /jobs/words/journal \
    /jobs/words/launches '/jobs/%3Cscript%3Ealert(1)%3C%2Fscript%3E' /metrics; do
    get "$path"
    says "$head" 'content-type: text/'
    if grep -qF '<script>alert' <<<"$body" && [ "$path" != /metrics ]; then fail "$path has a foreign script"; fi
    if grep -qE ' (on[a-z]+|style)=' <<<"$body"; then fail "$path has a script or style that the policy forbids"; fi
done
gets 200 / '&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;' '<table' 'href="/jobs/words"' 'href="/jobs/%3Cscript%3E'
gets 200 /jobs/words 'saved at step 47' 'of 4 shown' '<table' '/jobs/words/rounds/4' 'generation ended'
time_line() { grep -o 'data-from="[0-9]*" data-to="[0-9]*" data-first="[0-9]*" data-last="[0-9]*"' <<<"$body" | grep -o '[0-9]*' | xargs; }
read -r from to first last <<<"$(time_line)"
same "the whole launch, which is shown at first" "$from $to" "$first $last"
gets 200 "/jobs/words?from=$((first + 2000))&to=$((first + 5000))" 'Zoom out' 'href="?#launches"'
same "the window that was asked for" "$(time_line)" "$((first + 2000)) $((first + 5000)) $first $last"
gets 200 "/jobs/words?from=$((first - 9000))&to=$((first - 5000))"
same "a window of another launch" "$(time_line)" "$first $last $first $last"
for window in from=5 to=5 'from=5&to=5' 'from=-1&to=5' 'from=x&to=5' 'from=1&to=99999999999999999999'; do
    gets 400 "/jobs/words?$window" 'from before to'
done
gets 200 /jobs/words/rounds/4 'Where the time went' '1 to 4 of 4' 'rank 3 last'
get /
says "$head" "^content-security-policy: default-src 'none'; script-src 'self'" '^x-content-type-options: nosniff$'
for asset in web.js web.css icon.svg; do gets 200 /$asset; done

# --- what is refused
gets 404 /nowhere 'there is no such page'
gets 404 /jobs/wrods 'knows no job'
gets 404 /api/v1/jobs/wrods '"error": ' 'knows no job'
gets 404 /jobs/words/rounds/77 'has no round 77'
gets 404 /jobs/words/rounds/x 'no such page'
gets 400 /api/v1/jobs/words/rounds/0
gets 404 /../../etc/passwd
for path in /jobs// /jobs//ranks /jobs//story /api/v1/jobs// /api/v1/jobs//nodes /api/v1/jobs//stream /jobs/%00; do
    gets 404 "$path" # no job has an empty name
done
gets 400 '/jobs/words/ranks?page=x' 'whole numbers'
gets 400 '/jobs/words/ranks?page=0'
gets 400 '/api/v1/jobs/words/events?since=-1'
gets 400 /api/v1/broker 'database'
gets 404 "/$(printf 'x%.0s' {1..4000})"
request POST /api/v1/jobs
same "status of a POST" "$status" 405
says "$body" 'only shows'
for host in evil.example 'evil.example:7780' '' localhost.evil.example; do
    get /api/v1/jobs "Host: $host"
    same "status for the host \"$host\"" "$status" 421
done
for host in localhost 127.0.0.1:99 '[::1]:7780' "$(hostname)"; do
    get /api/v1/jobs "Host: $host"
    same "status for the host \"$host\"" "$status" 200
done

# --- a port in use, and words that mean nothing
refused() { # CODE TEXT OPTIONS...
    local code=0 want=$1 text=$2
    shift 2
    "$muster" web --db "$dir/hostile.db" "$@" >"$dir/answer" 2>&1 </dev/null || code=$?
    same "exit code of muster web $*" "$code" "$want"
    says "$(cat "$dir/answer")" "$text"
}
refused 1 'in use by another program' --listen "${url#http://}"
refused 2 'give HOST:PORT' --listen 7780
refused 2 'status --json. has the figures' --json
refused 2 'whole number from 0 to 65535' --listen 127.0.0.1:70000
refused 2 'address of this host' --listen no.such.host.invalid:0
refused 1 'cannot listen' --listen 192.0.2.1:0

# --- the database is replaced: the new one is shown
gets 200 /healthz ok
"$rows" small "$dir/small.db"
rm -f "$dir/hostile.db-wal" "$dir/hostile.db-shm"
mv "$dir/small.db" "$dir/hostile.db"
is_new() { get /api/v1/jobs && not grep -qF alert <<<"$body" && grep -q '"words"' <<<"$body"; }
await "the new database to be shown" is_new
rm "$dir/hostile.db"
is_away() { is_ready /readyz 503; }
await "the page to say that the database is gone" is_away
says "$body" 'there is no database'
gets 200 /healthz ok
gets 200 /metrics 'muster_up 0'
web_stop
