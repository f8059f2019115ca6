#!/bin/bash
# client/examples/train_words_ps: a parameter server and three workers train through schedule and join. With a worker that
# is killed in the middle of a task, and with a worker and the parameter server killed together, the loss falls
# as in an undisturbed run of the same program, and the weights at the end are its bits.
. "$(dirname "$0")/../lib.sh"
program=$EXAMPLES_DIR/train_words_ps
sed -n '1~25p' /usr/share/dict/american-english >"$dir/words" # twelve processes read it
model=(--words "$dir/words" --hidden 16 --batch 16 --report-every 20 --timeout-ms 30000)
steps=80
patience=120 # for whole jobs

# one_starts ROLE [INDEX] - its pid in ${one[ROLE INDEX]}.
declare -A one
one_starts() {
    MUSTER_JOB=$job MUSTER_BROKER=$broker MUSTER_RANK=${2:-0} MUSTER_CHECKPOINT_DIR=$dir/checkpoints-$job \
        "$program" "$1" "$dir/$job.sock" "${model[@]}" </dev/null >>"$dir/$job-$1-${2:-}.log" 2>&1 &
    one[$1${2:-}]=$!
    started+=("$!")
}
one_is_gone() { not is_ours "${one[$1]}"; }
one_killed() { kill_child "${one[$1]}" "$1"; }

# all_start JOB SLEEP_MS - the coordinator under `muster run`, since it is the job's rank.
all_start() {
    job=$1
    model=("${model[@]}" --step-sleep-ms "$2")
    one_starts ps
    for index in 0 1 2; do one_starts worker "$index"; done
    MUSTER_CHECKPOINT_DIR=$dir/checkpoints-$job "$muster" run -n 1 --job "$job" --broker "$broker" -- \
        "$program" coordinator "$dir/$job.sock" "${model[@]}" --steps "$steps" </dev/null >"$dir/$job.log" 2>&1 &
    one[coordinator]=$!
    started+=("$!")
}
job_is_over() { one_is_gone coordinator; }
is_at_step() { grep -q "step $1 of" "$dir/$job.log"; }

# job_ends - its last line in $end, its losses in $losses; ps and workers end in order.
job_ends() {
    local code=0 each

    await "the end of job $job" job_is_over
    wait "${one[coordinator]}" || code=$?
    same "exit code of job $job" "$code" 0
    for each in 0 1 2; do await "worker $each, to tell it" is_live "$each"; done # one that begins would die of it
    for each in ps worker0 worker1 worker2; do kill -TERM "${one[$each]}"; done
    for each in ps worker0 worker1 worker2; do
        code=0
        await "the end of $each" one_is_gone "$each"
        wait "${one[$each]}" || code=$?
        same "exit code of $each of job $job" "$code" 0
    done
    end=$(sed -n 's/^.*\(step [0-9]* weights [0-9a-f]*\)$/\1/p' "$dir/$job.log")
    losses=$(sed -n 's/^.*\(step [0-9]* of [0-9]*  loss [0-9.]*\)$/\1/p' "$dir/$job.log" | sort -u)
    says "$end" "^step $steps weights [0-9a-f]{16}$"
}
at_worker() { [ "$(query "SELECT count(*) FROM task WHERE state = 'leased' AND worker = (SELECT incarnation FROM task_worker
    WHERE job = '$job' AND worker_index = $1 AND state = 'live')")" = 1 ]; }
is_live() { [ "$(query "SELECT count(*) FROM task_worker WHERE job = '$job' AND worker_index = $1 AND state = 'live' AND pid =
    ${one[worker$1]}")" = 1 ]; }
is_lost() { [ "$(query "SELECT count(*) FROM task_worker WHERE job = '$job' AND worker_index = $1 AND state = 'lost'")" = 1 ]; }
any_at_worker() { [ "$(query "SELECT count(*) FROM task WHERE state = 'leased' AND leased_unix_ms < 1000 * (strftime('%s', 'now') - 1)")" -ge 1 ]; }
server_is_missed() { grep -q "parameter server 0 of job $job (process " "$dir/$job.log"; }

broker_start
all_start plain 0
job_ends
right=$end right_losses=$losses
same "losses that were told" "$(wc -l <<<"$losses")" 4
first=$(sort -k2n <<<"$losses" | awk 'NR == 1 { print $6 }') last=$(sort -k2n <<<"$losses" | awk 'END { print $6 }')
holds "the loss falls (from $first to $last)" "$(awk -v a="$first" -v b="$last" 'BEGIN { print (b < a - 0.1 && b > 1) }')" = 1

# One that stands still is given a task, and dies with it.
all_start killed 20
await "the middle" is_at_step 20
kill -STOP "${one[worker1]}"
await "a task at worker 1" at_worker 1
one_killed worker1
await "steps without it" is_at_step 60
is_lost 1 || fail "the steps went on and worker 1 is not lost"
one_starts worker 1

# Then the coordinator's process: `muster run` begins it again, from the newest checkpoint.
pkill -KILL -P "${one[coordinator]}" || fail "the coordinator's process is not there"
job_ends
says "$(tail -n 1 "$dir/killed.log")" 'job killed finished \(2 launches, 0 preemptions, 1 failure\)'
same "weights with a worker and the coordinator killed" "$end" "$right"
same "losses with a worker and the coordinator killed" "$losses" "$right_losses"

# A worker and the parameter server, whose weights are gone: both the job's newest checkpoint has.
all_start together 20
await "the middle" is_at_step 20
for index in 0 1 2; do kill -STOP "${one[worker$index]}"; done
await "a task that stands still" any_at_worker # and its coordinator in a call, so that only muster can miss the server
one_killed worker2
one_killed ps
await "its loss, told by the coordinator's call" server_is_missed
for index in 0 1; do kill -CONT "${one[worker$index]}"; done
one_starts ps
one_starts worker 2
job_ends
says "$(cat "$dir/together.log")" 'finished \(2 launches, 0 preemptions, 1 failure\)'
same "weights with worker and parameter server killed" "$end" "$right"
same "losses with worker and parameter server killed" "$losses" "$right_losses"

finish "the loss falls from $first to $last in $steps steps of three workers and a parameter server; the same bits with a worker" \
    "killed while it had a task, then the coordinator, and with a worker and the parameter server killed together"
