#!/bin/bash
# The scenario that others publish: 8 workers, 1600 steps, a save every 400, four preemptions. With notices no step is
# computed twice. The same four ranks killed at the same steps, without a notice, cost the steps since the newest save.
. "$(dirname "$0")/../lib.sh"

steps=1600 ends_at='250 650 1050 1450'
lost_steps() { # of all launches of the job; a rank computes from where it resumed
    cat "$dir/$job"-*-rank1.log | sed -n 's/^trainer: .*\bcomputed=\([^ ]*\).*/\1/p' |
        awk -v steps=$steps '{ sum += $1 } END { print sum - steps }'
}

broker_start
options=(--steps $steps --barrier 1 --save-every 400)
job=told
rank=2
for step in $ends_at; do
    ranks_start 8 --step-ms 1 --signal-rank $rank --signal-step "$step"
    all_preempted
    rank=$((rank + 1))
done
ranks_start 8 --step-ms 1
ranks_end 0
sums_right
twice_told=$(lost_steps)
same "steps that were computed twice, with notices" "$twice_told" 0

job=untold
rank=2
for step in $ends_at; do
    ranks_start 8 --step-ms 1 --kill-rank $rank --kill-step "$step"
    rank_ends $rank 137
    for ((other = 0; other < 8; other++)); do [ $other = $rank ] || rank_ends $other 1; done
    rank=$((rank + 1))
done
ranks_start 8 --step-ms 1
ranks_end 0
sums_right
twice_untold=$(lost_steps)
holds "steps that were computed twice, without notices" "$twice_untold" -gt 800
finish "four preemptions of 8 workers with notices: $twice_told steps computed twice; four losses without: $twice_untold"
