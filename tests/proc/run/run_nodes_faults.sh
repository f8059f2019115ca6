#!/bin/bash
# Hosts of `muster run --nodes` in trouble. One of which a rank is told to end leaves. One that vanishes before the first
# step, and one whose rank ends there, hold nobody up. One whose clock is an hour off trains as any other. One that does
# not see the others' directory is named, and nothing of it is touched.
# Rules: R15.2, R15.4.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_nodes.sh"

broker_start
export MUSTER_CHECKPOINT_DIR="$dir/checkpoints"
joined() { [ "$(query "SELECT count(*) FROM node WHERE job = '$job' AND state IN ('joined', 'restored')")" = "$1" ]; }
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
finish "hosts in trouble hold nobody up"
