#!/bin/bash
# An application error on a random rank: every rank raises it (theirs broadcasts only the framework's own errors); without
# a checkpoint the restart begins again and still ends with the whole sum.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_conform.sh"

broker_start
run_options=(--max-failures 0)
for form in run check scope; do
    conform "error-$form" 4 1 --fail --form $form
    same "ranks that failed by themselves" "$(grep -c 'status=MUSTER_E_STEP' "$dir/$job.log")" 1
    same "ranks that were told" "$(grep -c 'status=MUSTER_E_PEER' "$dir/$job.log")" 3
    same "checkpoints" "$(committed | wc -w)" 0
done
run_options=(--max-failures 1 --backoff-ms 10)
conform error-restarted 4 0 --fail
same "lives" "$(lives)" 2
same "ranks that ended with the whole sum" "$(grep -c "life=1 resumed=0 done=$total sum=$((4 * total)) " "$dir/$job.log")" 4
finish "an application error on a random rank reaches all four; the restarted job ends with the whole sum"
