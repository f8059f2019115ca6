#!/bin/bash
# Nobody reads musterd's stderr, and the pipe is full: it starts, serves and ends, and later tells how many lines are missing.
. "$(dirname "$0")/../lib.sh"

mkfifo "$dir/log pipe"
exec {pipe}<>"$dir/log pipe" # a reader that does not read
dd if=/dev/zero of="$dir/log pipe" oflag=nonblock bs=4096 2>/dev/null || true
if printf x | timeout 1 dd of="$dir/log pipe" oflag=nonblock status=none 2>/dev/null; then
    fail "the pipe is not full"
fi
"$musterd" --db "$db" --listen "$ipc" --port-file "$dir/port" </dev/null 2>"$dir/log pipe" &
broker_pid=$!
started+=("$broker_pid")
broker=$ipc
await "musterd's port" broker_said_where
ranks_start 2 --steps 60 --signal-rank 1 --signal-step 20
all_preempted
committed_whole "$saved"

# what is in the pipe, without the zeros that filled it
drain() { { dd if="$dir/log pipe" iflag=nonblock bs=4096 2>/dev/null || true; } | tr -d '\0' >>"$dir/drained"; }
drain
ranks_start 2 --steps 60
all_finished 60
told() { drain && grep -Eq '[1-9][0-9]* lines of this log were dropped' "$dir/drained"; }
await "the number of dropped lines" told
grep -q 'generation 2 opened' "$dir/drained" || fail "the log does not go on: $(cat "$dir/drained")"
broker_stop
finish "a full stderr that nobody reads: musterd starts, serves a preemption and ends; $(grep -Eo '[0-9]+ lines' "$dir/drained" |
    head -n 1) were dropped and counted"
