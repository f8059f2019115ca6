#!/bin/bash
# Keep policies that count hours, through a broker and on disk: each hour it is killed, the times in its database are set
# back by one (the same as if its clock went on by one), and it starts again. What is kept is the same after the job is
# opened once more.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_manager.sh"

hour=3600000
listen=$ipc

# The checkpoint of this step is whole in both jobs, and nothing is on its way out.
is_quiet() {
    [ "$(query "SELECT count(*) FROM checkpoint WHERE step = $(($1 + 1)) AND state = 'committed' AND path != ''")" = 2 ] &&
        [ "$(query "SELECT count(*) FROM checkpoint WHERE state = 'deleting'")" = 0 ]
}

an_hour_passes() {
    broker_kill
    "$sql" --write "$db" "UPDATE checkpoint SET committed_unix_ms = committed_unix_ms - $hour" >/dev/null
    broker_start
}

is_on_disk() { [ "$(cd "$dir/checkpoints-$job" && ls | sort -n | xargs)" = "$*" ]; }

# kept STEP... - of the job that ended: on disk; and in the list and on disk after it was opened again.
kept() {
    await "what job $job keeps on disk" is_on_disk "$@"
    ranks_start 1 --steps 0
    ranks_end 0
    each_has resumed "${*: -1}"
    listed "$*"
    on_disk "$@"
}

broker_start
policies=(--every 1 --insist 1 --gate "$dir/go")
job=hours options=("${policies[@]}" --keep-latest 0 --keep-every 3 --keep-every-ms $((5 * hour)))
ranks_start 1 --steps 9
keep
job=lasting options=("${policies[@]}" --keep-last-ms $((2 * hour + hour / 2)))
ranks_start 1 --steps 9
keep
for step in 0 1 2 3 4 5 6 7; do
    touch "$dir/go$step"
    await "step $step of both jobs" is_quiet "$step"
    an_hour_passes
done
touch "$dir/go8"
options=("${policies[@]}" --keep-latest 0 --keep-every 3 --keep-every-ms $((5 * hour)))
recall hours
ranks_end 0
kept 0 3 5 6
options=("${policies[@]}" --keep-last-ms $((2 * hour + hour / 2)))
recall lasting
ranks_end 0
kept 6 7 8

finish "keep 0, every 3 steps and every 5 h over 9 hourly saves keep 0 3 5 6; the last 2.5 h of 9 keep 6 7 8" \
    "through a broker that is killed every hour, on disk, and after the jobs were opened again"
