# `muster run`: nothing that it started outlives it, or the launch.
. "${BASH_SOURCE%/*}/lib_run.sh"

# A rank that ignores SIGTERM is killed after the grace, when another has failed.
run -n 2 --max-failures 0 --grace-ms 150 -- bash -c '
    [ $MUSTER_RANK = 0 ] && { until [ -e "$dir/deaf" ]; do sleep 0.02; done; exit 3; }
    trap "" TERM; touch "$dir/deaf"; exec sleep 60'
expect_code 3 "a deaf rank"
expect err "sending SIGTERM to 1 rank"
expect err "sending SIGKILL to 1 rank"

# So is one that ignores the signal by which the whole job was told to end.
rm -f "$dir/deaf"
launch --stop-ms 150 -- bash -c 'trap "" TERM; touch "$dir/deaf"; exec sleep 60'
await "the rank" test -e "$dir/deaf"
kill -TERM $pid
ended
expect_code 137 "a rank deaf to the forwarded signal"

# A rank that answers SIGTERM within the grace is not killed.
run -n 2 --max-failures 0 --grace-ms 150 -- bash -c '
    [ $MUSTER_RANK = 0 ] && { until [ -e "$dir/ears" ]; do sleep 0.02; done; exit 3; }
    trap "exit 0" TERM; touch "$dir/ears"; sleep 60 & wait'
expect_code 3 "an attentive rank"
! grep -q SIGKILL "$dir/err" || fail "SIGKILL to a rank that left"

# A launch's leftovers go before the next: a child in the group, and one that made itself a daemon.
run -- bash -c '
    [ $MUSTER_RESTART_COUNT = 0 ] || exit 0
    sleep 60 & echo $! >>"$dir/left"
    setsid bash -c "echo \$\$ >>\"$dir/left\"; exec sleep 60" &
    until [ "$(wc -l <"$dir/left")" = 2 ]; do sleep 0.02; done; exit 42'
expect_code 0 "leftovers"
lines "$dir/left" 2 || fail "the leftovers were not there"
while read -r left; do is_gone "$left" || fail "process $left was left over"; done <"$dir/left"

# SIGKILL to the supervisor: no rank and nothing of its group stays.
launch -n 3 -- bash -c 'echo $$ >>"$dir/all"; sleep 60 & echo $! >>"$dir/all"; wait'
await "all processes" lines "$dir/all" 6
kill -KILL $pid
ended
while read -r left; do await "the end of $left" is_gone "$left"; done <"$dir/all"
