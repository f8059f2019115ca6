#!/bin/bash
# Peers that mean harm: a message without an end, random topics, more connections than files may be open. The broker's
# memory and time stay bounded, and a job beside them saves on a notice.
. "$(dirname "$0")/../lib.sh"

hostile=$TESTS_DIR/proc/prog_hostile
memory_max_kb=131072 # more than before the attack: sanitizers keep what was freed; unbounded it is 300 MB to 1 GB
jobs_min=3

memory_kb() { sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$broker_pid/status"; }
cpu_ticks() {
    local stat
    read -r stat <"/proc/$broker_pid/stat"
    set -- ${stat##*) }
    printf '%s\n' $((${12} + ${13}))
}
stepping() { rank_said 0 '^at step' && rank_said 1 '^at step'; }
job_starts() {
    job=$1 options=(--step-ms 4 --say-every 10)
    ranks_start 2 --steps 1000000
    await "the ranks to step" stepping
}
job_saves() {
    kill -TERM "${pids[1]}"
    all_preempted
    committed_whole "$saved"
    ranks_start 2 --steps $((saved + 20))
    all_finished $((saved + 20))
}
grew_little() { holds "KiB that the broker grew by $1" $(($(memory_kb) - before)) -lt "$memory_max_kb"; }

# 1. One message whose parts never end.
broker_start
events=$(tail -n 1 "$dir/port")
job_starts parts
before=$(memory_kb)
sent=$("$hostile" parts "$broker" 700)
grew_little "a message of $sent bytes without an end"
job_saves

# 2. Random topics.
job_starts topics
before=$(memory_kb)
sent=$("$hostile" topics "$events" 300000 &
    attack=$!
    "$muster" status --broker "$broker" --timeout 5000 >/dev/null || fail "muster status beside random topics"
    wait "$attack")
grew_little "$sent topics"
job_saves
says "$(cat "$dir/musterd.log")" 'closed connections: [0-9]+ that sent'

# 3. More connections than files may be open.
broker_stop
files=256
printf '#!/bin/bash\nulimit -n %d\nexec "%s" "$@"\n' "$files" "$musterd" >"$dir/musterd-few-files"
chmod +x "$dir/musterd-few-files"
musterd=$dir/musterd-few-files
for listen in "$listen" "$ipc"; do
    broker_start
    job_starts "connections-${listen%%:*}"
    "$hostile" connections "$broker" 400 20000 >"$dir/held" &
    attack=$!
    started+=("$attack")
    told() { grep -q "limit of open files ($files)" "$dir/musterd.log"; }
    await "the limit in the log" told
    ticks=$(cpu_ticks) since=$(now_ms)
    await "2 s of the attack" passed_ms "$since" 2000
    ticks=$(($(cpu_ticks) - ticks))
    holds "hundredths of a second of 2 s that the broker took for nothing" "$ticks" -lt 20
    job_saves
    kill "$attack" 2>/dev/null || true
    wait "$attack" 2>/dev/null || true
    "$muster" status --broker "$broker" >/dev/null || fail "no answer behind the attack"
    broker_stop
    : >"$dir/musterd.log"
done
jobs_resumed $jobs_min
finish "a message without an end, random topics and more connections than files: the broker's memory and time stay \
bounded, it says what it closed, and jobs beside them save on a notice"
