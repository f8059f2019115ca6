#!/bin/bash
# A notice that leaves half an hour stands before the job's first launch: the job trains to its end anyway. One early
# save measures what a save takes; nobody leaves for it, whether the ranks begin at once or after some seconds.
. "$(dirname "$0")/../lib.sh"

broker_start
export MUSTER_NOTICE_SOURCES="file:$dir/notice" MUSTER_BROKER=$broker
echo '+1800 terminate' >"$dir/notice"
for job in at_once later; do
    begin="exec '$trainer' --steps 800 --step-ms 5 --barrier 1"
    [ "$job" = at_once ] || begin="sleep 3; $begin"
    code=0
    TRAINER_GROUP=$group-$job MUSTER_CHECKPOINT_DIR="$dir/$job" timeout "$hangs_after" "$muster" run -n 2 --job "$job" -- sh -c "$begin" \
        >"$dir/$job.log" 2>&1 || code=$?
    same "exit code of muster run" "$code" 0
    same "launches" "$(grep -c 'muster run: launch .*starting' "$dir/$job.log")" 1
    same "ranks that did all steps" "$(grep -c 'resumed=0 computed=800 done=800' "$dir/$job.log")" 2
    same "early saves" "$(query "SELECT count(*) FROM round WHERE job = '$job' AND cause = 'notice'")" 1
done
finish "a notice half an hour ahead costs one early save and no launch"
