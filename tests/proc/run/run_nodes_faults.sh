#!/bin/bash
# Hosts of `muster run --nodes` in trouble. A host leaves if one of its ranks is told to end. A host that vanishes,
# or whose rank ends, before the first step holds nobody up. A host whose clock is an hour off trains as any other. A
# host that does not see the others' directory is named, and nothing in that directory is touched.
# Rules: R3.7, R15.2, R15.4.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_nodes.sh"

broker_start
export MUSTER_CHECKPOINT_DIR="$dir/checkpoints"
joined() { [ "$(query "SELECT count(*) FROM node WHERE job = '$job' AND state IN ('joined', 'restored')")" = "$1" ]; }
launch_is_over_at() { tail -n 1 "$dir/$1.log" | grep -q 'waiting for hosts: 1 of 2 is here'; }
seconds_since() { printf '%s\n' $((($(now_ms) - $1) / 1000)); }

# A rank is told to end, and not its `muster run`: that host takes no part in the next launch.
host_start a
host_start b
await "both hosts in launch 1" trains 1 4
kill -TERM "$(pgrep -P "$(supervisor b)" -x prog_elastic | head -n 1)"
host_ends b 42
says "$(<"$dir/b.log")" 'this host was told to end \(notice signal-[^ ]* of rank [0-3]\), and takes no part in the next launch'
await "the other one alone" trains 2 2

# A host vanishes when the launch is formed, and its ranks have not come yet. The one that waits for them is told, and
# what muster then says to its ranks does not count as a word to this host.
rank_through=(bash -c 'until [ ! -e "$0" ]; do sleep 0.05; done; exec "$@"' "$dir/hold")
touch "$dir/hold"
host_start c
await "both hosts in launch 3" launch_is 3
await "the ranks that are there to wait for the others" joined 2
host_kill c
began=$(now_ms)
await "the other one alone again" trains 4 2
holds "seconds for that" "$(seconds_since "$began")" -lt 20
says "$(<"$dir/a.log")" 'host .* of launch 3 is gone before a step was begun: launch 3 ends'
rm "$dir/hold"

# A rank ends before it is a node of the launch: its host begins again, and so do all.
rank_through=(bash -c 'mkdir "$0.$MUSTER_RANK" 2>/dev/null && exit 1; exec "$@"' "$dir/failed")
began=$(now_ms)
host_start d
await "both hosts in launch 6" trains 6 4
holds "seconds for that" "$(seconds_since "$began")" -lt 30
says "$(<"$dir/a.log")" 'launch 5 is over on host .* before a step was begun: launch 5 ends'
rank_through=()
kill -TERM "$(supervisor a)" "$(supervisor d)"
host_ends a 42
host_ends d 42
# A rank that is told to end, and ends with 0 before a step, has not finished: it begins again with all.
cat >"$dir/obeys" <<'EOF'
[ "$MUSTER_RESTART_COUNT" = 0 ] || { echo "second life" && exit 0; }
if [ "$MUSTER_RANK" -ge 2 ]; then
    until [ -e "$0.0" ] && [ -e "$0.1" ]; do sleep 0.01; done
    exit 1
fi
trap 'exit 0' TERM
touch "$0.$MUSTER_RANK"
while :; do sleep 0.01; done
EOF
job=obeys nodes=2
rank_through=(bash "$dir/obeys")
host_start e
await "the first host to wait" host_says e '1 of 2 is here'
host_start f
host_ends e 0
host_ends f 0
same "ranks in their second life" "$(cat "$dir/e.log" "$dir/f.log" | grep -c 'second life')" 4
rank_through=()

# A host whose clock is an hour ahead. Times in records are of the broker's clock, bounds do not use the wall clock.
cat >"$dir/ahead.c" <<'EOF'
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *ret)
{
    int code = (int)syscall(SYS_clock_gettime, clock, ret);
    if (clock == CLOCK_REALTIME)
        ret->tv_sec += 3600;
    return code;
}
EOF
"$CC" -shared -fPIC -o "$dir/ahead.so" "$dir/ahead.c"
ln -s "$dir/ahead.so" "/tmp/muster-ahead-$$.so" # LD_PRELOAD takes no path with a space
job=ahead steps=100000
export MUSTER_CHECKPOINT_DIR="$dir/ahead"
host_start g
host_through=(env "ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0" "LD_PRELOAD=/tmp/muster-ahead-$$.so")
host_start h
host_through=()
await "both hosts in launch 1" trains 1 4
rm "/tmp/muster-ahead-$$.so"
same "times of hosts that are not the broker's" \
    "$(query "SELECT COUNT(*) FROM host WHERE job = '$job' AND abs(state_unix_ms - $(now_ms)) > 600000")" 0
kill -TERM "$(supervisor g)" "$(supervisor h)"
host_ends g 42
host_ends h 42
holds "steps that were saved" "$(committed)" -gt 5
says "$(date -u -r "$MUSTER_CHECKPOINT_DIR/$(committed)" +%F)" "$(date -u +%F)"

# A host does not see the directory that the others see. It is named, it is over there, and no file is touched.
also=()
if [ "$(id -u)" = 0 ] && unshare -m --propagation private true 2>/dev/null; then
    job=unseen
    mkdir "$dir/unseen" "$dir/not mounted"
    export MUSTER_CHECKPOINT_DIR="$dir/unseen"
    host_start i
    await "the first host to wait" host_says i '1 of 2 is here'
    # the directory of whoever comes first counts
    rank_through=(bash -c 'until grep -q "job unseen: generation 1 opened" "$0"; do sleep 0.05; done; exec "$@"' "$dir/musterd.log")
    host_through=(env ELASTIC_OPEN_MS=100 unshare -m --propagation private bash -c 'mount --bind "$0" "$1" && shift && exec "$@"'
        "$dir/not mounted" "$dir/unseen")
    host_start j
    host_through=() rank_through=()
    host_ends j 93
    says "$(<"$dir/j.log")" "$dir/unseen is one directory for rank . on .* and another for rank . on .*; mount the same file system"
    same "what was made in place of the mount" "$(cd "$dir/not mounted" && find . | sort | xargs)" ". ./.muster ./.muster/JOB ./.muster/NUMBER"
    await "the other host to wait for another one" launch_is_over_at i
    kill -TERM "$(supervisor i)"
    host_ends i 42
    also=("one that sees another directory is told so")
fi
finish "hosts in trouble hold nobody up" ${also[@]+"${also[@]}"}
