#!/bin/bash
# `muster web --orders`: only a page from the printed address may save, notify and pin, and no page of another site.
# Without --orders the page only shows.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib_web.sh"

cd "$dir"
key() { "$muster" key add "$@" --db "$db" >/dev/null || fail "no key $1"; }
key node --role node --job "$job"
key viewer --role viewer --job '*'
key operator --role operator --job "$job"
key other --role operator --job 'other*'
broker_start
options=(--step-ms 20 --say-every 10)
MUSTER_KEY_FILE=$dir/node.key ranks_start 2 --steps 1000000 --until-file "$dir/end"

page() { web_start --broker "$broker" --key "$dir/$1.key" "${@:2}"; }
trains() { get "/api/v1/jobs/$job" && grep -q '"state": "running"' <<<"$body"; }
# order STATUS PATH [HEADER...] - says what was answered in $body.
order() {
    local want=$1 path=$2 lines="Host: ${url#http://}" line
    for line in "${@:3}"; do lines+=$'\r\n'$line; done
    request POST "/api/v1/jobs/$path" "$lines"
    [ "$status" = "$want" ] || fail "status of the order $path ($*) is $status, expected $want: $body"
}
orders() { query "SELECT count(*) FROM event WHERE kind = 'order'"; }

# --- read-only
page operator
await "the job to train" trains
order 405 "$job/save"
order 405 "$job/save" 'X-Muster-Orders: '
get "/jobs/$job"
if grep -q 'id="orders"' <<<"$body"; then fail "a page that only shows has a place for orders"; fi
same "addresses that take orders" "$(web_orders_url)" ''
web_stop

# --- who may not start it so
refused() { # CODE TEXT OPTIONS...
    local code=0 want=$1 text=$2
    timeout 20 "$muster" web --orders --listen 127.0.0.1:0 "${@:3}" >"$dir/answer" 2>&1 </dev/null || code=$?
    same "exit code of muster web --orders ${*:3}" "$code" "$want"
    says "$(cat "$dir/answer")" "$text"
}
refused 4 "needs an operator's key, and .*viewer\.key is a viewer's" --broker "$broker" --key "$dir/viewer.key"
refused 4 "node\.key is a node's" --broker "$broker" --key "$dir/node.key"
refused 2 'web needs a broker' --db "$db"

# --- who may not order
page operator --orders
secret=$(web_orders_url)
secret=${secret##*=}
holds "characters of the secret" "${#secret}" -ge 32
own="X-Muster-Orders: $secret"
for path in / "/jobs/$job" /web.js "/api/v1/jobs/$job"; do
    get "$path"
    if grep -qF "$secret" <<<"$head$body"; then fail "$path tells the secret"; fi
done
get "/jobs/$job"
says "$body" 'id="orders"'
order 403 "$job/save"
says "$body" 'may not give orders'
order 403 "$job/save" "X-Muster-Orders: ${secret%?}"
order 403 "$job/save" "X-Muster-Orders: ${secret%?}x"
order 403 "$job/save?orders=$secret&X-Muster-Orders=$secret"
for origin in http://evil.example "http://127.0.0.1:1" null 'http://evil.example://'"${url#http://}" "${url#http://}"; do
    order 403 "$job/save" "$own" "Origin: $origin"
    says "$body" "another site's page"
done
request POST "/api/v1/jobs/$job/save" $'Host: evil.example\r\n'"$own"$'\r\nOrigin: http://evil.example'
same "status of an order for another host" "$status" 421
get "/api/v1/jobs/$job/save" "Host: ${url#http://}"$'\r\n'"$own"
same "status of an order by GET" "$status" 404
for method in PUT OPTIONS DELETE; do
    request "$method" "/api/v1/jobs/$job/save" "Host: ${url#http://}"$'\r\n'"$own"
    same "status of $method" "$status" 405
done
same "orders of those that may not" "$(orders)" 0

# --- orders, each as its verb says
order 200 "$job/save" "$own" "Origin: $url"
says "$body" '"round": 1'
saved() { [ "$(query "SELECT state FROM round WHERE job = '$job' AND round = 1")" = committed ]; }
await "the save" saved
order 200 "$job/pin" "$own"
says "$body" '"pinned": 1'
same "pins" "$(query "SELECT group_concat(checkpoint || ' ' || id) FROM pin WHERE job = '$job'")" '1 operator'
order 200 "$job/notify?rank=1&grace=600&text=%3Cb%3Ethe%20host%3C%2Fb%3E" "$own"
says "$body" '"rank": 1'
noticed() { get "/jobs/$job" && grep -qF '&lt;b&gt;the host&lt;/b&gt;' <<<"$body"; }
await "the page to show the notice" noticed
same "orders on record" "$(orders)" 3
says "$(query "SELECT group_concat(text, ' | ') FROM event WHERE kind = 'order'")" 'key operator at 127\.0\.0\.1: save' \
    'key operator at 127\.0\.0\.1: pin the newest checkpoint' 'key operator at 127\.0\.0\.1: notify rank 1'

# --- what makes no sense is said, and is no order
order 400 "$job/notify" "$own"
says "$body" 'needs a rank'
order 400 "$job/notify?rank=x" "$own"
order 400 "$job/notify?rank=0&grace=soon" "$own"
order 403 "$job/notify?rank=77" "$own"
order 403 "wrods/save" "$own"
says "$body" 'not for job wrods'
order 404 "$job/forget" "$own"
same "orders on record" "$(orders)" 3
web_stop

# --- an operator of other jobs
page other --orders
secret=$(web_orders_url)
order 403 "$job/save" "X-Muster-Orders: ${secret##*=}"
says "$body" 'key other is for'
touch "$dir/end"
web_stop
