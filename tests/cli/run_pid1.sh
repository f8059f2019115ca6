# `muster run` as process 1 of a pid namespace, as in a container.
. "${BASH_SOURCE%/*}/lib_run.sh"
unshare --pid --fork --mount-proc true 2>/dev/null || { echo "skipped: no right to make a pid namespace"; exit 77; }

# The rank leaves an orphan behind, which must not stay a zombie while the job runs.
unshare --pid --fork --kill-child --mount-proc "$MUSTER" run -n 2 -- bash -c '
    trap "echo leaving; exit 42" TERM
    bash -c "bash -c \"echo \\\$\\\$ >\\\"$dir/orphan.$MUSTER_RANK\\\"; exec sleep 0.1\" &"
    until [ -s "$dir/orphan.$MUSTER_RANK" ]; do sleep 0.02; done
    while [ -e "/proc/$(cat "$dir/orphan.$MUSTER_RANK")" ]; do sleep 0.02; done
    echo "$PPID reaped it"; sleep 60 & wait' >"$dir/out" 2>"$dir/err" &
pid=$!
started="$started $pid"
await "two orphans reaped by process 1" eval '[ "$(grep -c "1 reaped it" "$dir/out")" = 2 ]'

# SIGTERM from outside, which the kernel drops for a process 1 without a handler.
read -r inner _ <"/proc/$pid/task/$pid/children"
kill -TERM "$inner"
ended
expect_code 42 "SIGTERM to process 1"
expect out "[0] leaving"
expect out "[1] leaving"
