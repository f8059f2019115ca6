#!/bin/bash
# `muster run --relay`: all ranks of this host speak through one connection, with keys. They are preempted through it. When
# the relay is killed they go past it, and the job is preempted and ends as without it.
. "$(dirname "$0")/../lib.sh"

mkdir -p "${db%/*}" "$dir/tmp"
"$muster" key add host --job '*' --role node --db "$db" --file "$dir/host.key" >"$dir/key.log" 2>&1 || fail "muster key add"
"$muster" key add all --job '*' --role operator --db "$db" --file "$dir/all.key" >>"$dir/key.log" 2>&1 || fail "muster key add"
broker_start
run_start() { # JOB - of a trainer that is told to end by a file
    job=$1
    TMPDIR=$dir/tmp TRAINER_GROUP=$group-$job MUSTER_CHECKPOINT_DIR="$dir/checkpoints-$job" MUSTER_KEY_FILE=$dir/host.key \
        "$muster" run --relay -n 4 --job "$job" --broker "$broker" -- "$trainer" --steps 1000000 --step-ms 5 \
        --barrier 1 --until-file "$dir/until-$job" >"$dir/$job.log" 2>&1 &
    run_pid=$!
    started+=("$run_pid")
}
notify() { MUSTER_KEY_FILE=$dir/all.key "$muster" notify --broker "$broker" --job "$job" 2 >"$dir/notify.log" 2>&1 || fail "muster notify"; }
trains() { [ "$(query "SELECT count(*) FROM progress WHERE job = '$job' AND done > ${1:-0}")" = 4 ]; }
launches() { [ "$(query "SELECT count(*) FROM generation WHERE job = '$job'")" = "$1" ] && trains "$(newest)"; }
newest() { query "SELECT coalesce(max(step), 0) FROM checkpoint WHERE job = '$job' AND state = 'committed'"; }
run_ends() {
    local code=0

    : >"$dir/until-$job"
    await "the end of muster run" not is_ours "$run_pid"
    wait "$run_pid" || code=$?
    same "exit code of muster run" "$code" 0
    same "what muster run left in its folder for temporary files" "$(find "$dir/tmp" -mindepth 1 | wc -l)" 0
}
relay_pid() { pgrep -P "$run_pid" -f 'musterd --relay'; }

run_start through
await "all ranks to train" trains
events=$(sed -n 2p "$dir/port")
same "connections that hear the broker's events" "$(ss -Htn state established "dport = :${events##*:}" | wc -l)" 1
notify
await "the second launch" launches 2
same "checkpoints" "$(query "SELECT count(*) FROM checkpoint WHERE job = '$job' AND state = 'committed'")" 1
run_ends

run_start past
await "all ranks to train" trains
kill -KILL "$(relay_pid)"
notify
await "the second launch" launches 2
run_ends
same "ranks that were lost" "$(query "SELECT count(*) FROM event WHERE kind = 'node lost'")" 0

code=0
"$muster" run --relay -- true >"$dir/without.log" 2>&1 || code=$?
same "exit code of --relay without a broker" "$code" 2
says "$(<"$dir/without.log")" '^muster run: --relay is for a broker on another host: say where it is, by --broker or MUSTER_BROKER'
code=0
"$muster" run --relay --broker "ipc://$dir/none/x" -- true >"$dir/away.log" 2>&1 || code=$?
finish "ranks of \`muster run --relay\` are preempted through one connection, and go past a relay that is killed"
