#!/bin/bash
# A sharded job with a format of its own that reads what any number of ranks saved goes on with more and with fewer ranks.
# Without the option another number is refused, and the error names it.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_manager.sh"

broker_start
job=any
options=(--sharded 1 --any-world 1 --every 2)
ranks_start 2 --steps 4
ranks_end 0
all_have_saved '0 2'
last=0 saved_by=
for world in 3 1; do
    last=$((last + 4))
    ranks_start $world --steps $((last + 4))
    ranks_end 0
    each_has resumed $((last - 2))
    same_on_all "number of ranks that saved it" 's/^saved by \(.*\) ranks/\1/p'
    saved_by+=" $said"
done
same "numbers of ranks that saved what was restored" "$saved_by" " 2 3"

job=refused
options=(--sharded 1 --save-ms 1 --every 2)
ranks_start 2 --steps 4
ranks_end 0
ranks_start 1 --steps 8
ranks_end 1
says "$(error_of 0)" 'has shards of 2 ranks, this job has 1, .*restore_any_world_size'

finish "a format that reads any number of ranks' parts resumes on 3 and on 1 rank; without the option that is refused"
