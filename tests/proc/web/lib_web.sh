# lib_web.sh - sourced by the scripts here, behind lib.sh: a `muster web` and questions to it.
rows=$TESTS_DIR/cli/prog_web_rows
client=$(dirname "${BASH_SOURCE[0]}")/lib_web.py
web_pid='' url=''

command -v python3 >/dev/null || { say "skipped: no python3"; exit 77; }

# web_start OPTIONS... - at a free port; leaves its address in $url.
web_start() {
    : >"$dir/web.out"
    "$muster" web --listen 127.0.0.1:0 "$@" </dev/null >"$dir/web.out" 2>>"$dir/web.log" &
    web_pid=$!
    started+=("$web_pid")
    await "the page's address" web_said_where
    url=$(sed -n 's|.*\(http://[^ ]*\)/ shows.*|\1|p' "$dir/web.out")
}

# web_orders_url - what whoever may give orders opens.
web_orders_url() { sed -n 's|.* opens \(http://[^ ]*\)$|\1|p' "$dir/web.out"; }

web_said_where() {
    kill -0 "$web_pid" 2>/dev/null || fail "muster web ended at its start"
    grep -q ' shows ' "$dir/web.out"
}

web_is_gone() { not is_ours "$web_pid"; }

# web_stop - in order: exit code 0, which under sanitizers also says that nothing leaked.
web_stop() {
    local code=0

    kill -TERM "$web_pid"
    await "the end of muster web" web_is_gone
    wait "$web_pid" || code=$?
    same "exit code of muster web" "$code" 0
}

# request METHOD PATH [HEADER] - $status, $head with the headers in lower case, and $body.
request() {
    local fd text crlf=$'\r\n'

    exec {fd}<>"/dev/tcp/127.0.0.1/${url##*:}" || fail "nobody listens at $url"
    printf '%s %s HTTP/1.1\r\n%s\r\nConnection: close\r\n\r\n' "$1" "$2" "${3:-Host: ${url#http://}}" >&"$fd"
    text=$(cat <&"$fd")
    exec {fd}>&-
    status=${text#* } status=${status%% *}
    head=${text%%"$crlf$crlf"*} head=${head,,} head=${head//$'\r'/}
    body=${text#*"$crlf$crlf"}
}
get() { request GET "$@"; }

# gets STATUS PATH [TEXT]... - with these texts in the answer.
gets() {
    local want=$1 path=$2 text
    shift 2
    get "$path"
    [ "$status" = "$want" ] || fail "status of $path is \"$status\", expected $want: $(grep -a 'role="alert"><p\|"error"' <<<"$body")"
    for text; do
        grep -qF -- "$text" <<<"$body" || fail "$path does not say \"$text\": $(head -c 600 <<<"$body")"
    done
}
is_ready() { get "$1" && [ "$status" = "$2" ]; }
