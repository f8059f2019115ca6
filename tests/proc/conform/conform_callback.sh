#!/bin/bash
# As TerminationConfig.termination_watcher_fn, and a program that learns of its end by itself.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_conform.sh"

broker_start
for notice in callback notify; do
    conform "by-$notice" 4 0 --notice $notice
    ends_whole 4 2 1
done
run_options=(--restart-preset gcp) # as on Google Cloud: 143
conform other-code 4 0 --notice callback
ends_whole 4 2 1
says "$(<"$dir/other-code.log")" 'restart code 143 from all 4 ranks'
finish "a notice by callback, and by the program itself: the whole sum, one checkpoint, also with restart code 143"
