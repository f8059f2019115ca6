#!/bin/bash
# SIGTERM and a time that is too short to save in, whoever tells it: by the option grace_period_ms, as what the sender of
# such a signal usually gives (TORQUE and mpirun 2 s), by an operator, by a notice file. All save at once, and lose nothing.
. "$(dirname "$0")/../lib.sh"

broker_start
options=(--steps 100000 --barrier 1 --say-every 5)
for grace in 1 1000 1500 2000 2999; do
    job=option-$grace
    ranks_start 2 --grace-ms "$grace"
    await "step 20" rank_said 1 'at step 20$'
    kill -TERM "${pids[0]}"
    all_preempted
    committed_whole "$saved"
done
job=usual
PBS_VERSION=TORQUE ranks_start 2
await "step 20" rank_said 1 'at step 20$'
kill -TERM "${pids[0]}"
all_preempted
committed_whole "$saved"
job=operator
ranks_start 2
await "step 20" rank_said 1 'at step 20$'
"$muster" notify 0 --grace 1 --job "$job" --broker "$broker" >"$dir/notify.log"
all_preempted
committed_whole "$saved"
job=file
MUSTER_NOTICE_SOURCES="file:$dir/notice" ranks_start 2
await "step 20" rank_said 1 'at step 20$'
echo '+1 terminate' >"$dir/notice"
all_preempted
committed_whole "$saved"
finish "a time left that is too short to save in is taken for unknown, whoever tells it: each saves at once"
