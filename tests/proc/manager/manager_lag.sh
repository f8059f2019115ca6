#!/bin/bash
# Ranks that do not meet in their steps: one lags behind the other by many saves, which are written behind the training,
# and some of which are deleted again. It is told the same of each step as the other.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_manager.sh"

broker_start
declare -A rules=([all]='' [newest]='--keep-latest 2 --ask 1')
for job in all newest; do
    read -ra options <<<"--every 1 --apart 1 --behind 1 --save-ms 60 --skew-ms 150 ${rules[$job]}"
    ranks_start 2 --steps 30
    keep
done
for job in all newest; do
    recall $job
    ranks_end 0
    all_have_saved "$(seq -s ' ' 0 29)"
done
finish "a rank that lags by many saves is told of each step what the other was told, also of those that are deleted"
