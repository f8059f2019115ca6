#!/bin/bash
# A rank is killed. The step of another one breaks for it and is told before anybody knows of the death. `muster why`
# names the killed rank.
. "$(dirname "$0")/../lib.sh"

broker_start
is_lost() { [ "$(query "SELECT state FROM node WHERE job = '$job' AND rank = $1")" = lost ]; }

ranks_start 3 --steps 100000 --step-ms 20 --slow-rank 0 --slow-ms 40 --kill-rank 1 --kill-step 20 --fail-rank 0 \
    --fail-step 15
ranks_end 137 1
ranks_end 1 0 2
same "the first error" "$(query "SELECT error_rank FROM generation WHERE job = '$job'")" 0
await "the loss of rank 1" is_lost 1
says "$("$muster" why --broker "$broker" --job "$job")" \
    'generation 1: rank 1 was lost, and a step failed, rank 0\.' \
    'Rank 1 .*it was last heard at .*before that failure was told'
finish "the rank that was killed is named, not only the one whose step broke for it"
