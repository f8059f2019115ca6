#!/bin/bash
# The step function fails at one rank: the others get its rank, code and text at their next boundary.
. "$(dirname "$0")/../lib.sh"

broker_start
for mode in 0 1 2; do
    for layout in 0 1; do
        job=mode$mode-layout$layout
        began_ms=$(now_ms)
        ranks_start 3 --steps 1000 --mode $mode --barrier $((1 - layout)) --sharded $layout --fail-rank 1 --fail-step 30
        ranks_end 1
        holds "ms until the last rank ended" $(($(now_ms) - began_ms)) -lt 8000
        says "$(error_of 1)" 'status=MUSTER_E_STEP' 'code=7'
        for rank in 0 2; do
            says "$(error_of "$rank")" 'status=MUSTER_E_PEER peer=1 code=7 ' 'text=.*(returned 7|own step failed)'
            each_has errors 1 "$rank"
        done
        each_has done 29 1
        same "recorded error" \
            "$(query "SELECT error_rank, error_code FROM generation WHERE job = '$job'")" '1|7'
    done
done
finish "a step that fails at one rank, three forms of the loop, both layouts: MUSTER_E_PEER with rank, code and text elsewhere"
