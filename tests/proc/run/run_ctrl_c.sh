#!/bin/bash
# `muster run` on a terminal: Ctrl-C ends the ranks without a save and it exits with 130; SIGTERM saves.
. "$(dirname "$0")/../lib.sh"

command -v script >/dev/null || { say "skipped: this system has no script(1), which gives a terminal"; exit 77; }

stepping() { [ "$(query "SELECT coalesce(min(done), 0) FROM progress WHERE job = '$job'")" -gt 0 ]; }

# run_on_terminal JOB - in the background; what is written to descriptor 9 is typed. The terminal's pid in $pid.
# A shell has SIGINT ignored in what it starts in the background, so it is set back.
run_on_terminal() {
    job=$1
    rm -f "$dir/keys"
    mkfifo "$dir/keys"
    exec 9<>"$dir/keys"
    TRAINER_GROUP=proc-$$-$job MUSTER_CHECKPOINT_DIR="$dir/checkpoints-$job" script -qfec \
        "exec env --default-signal=INT '$muster' run -n 2 --job $job --broker $broker -- '$trainer' --steps 100000 --barrier 1" \
        "$dir/$job.log" <"$dir/keys" >/dev/null 2>&1 9>&- &
    pid=$!
    started+=("$pid")
    await "the steps of job $job" stepping
}
is_over() { not kill -0 "$pid"; }
ended() { # CODE
    local code=0

    await "the end of muster run" is_over
    wait "$pid" || code=$?
    exec 9>&-
    same "exit code of muster run" "$code" "$1"
    not grep -q "launch 2" "$dir/$job.log" || fail "the ranks were started again"
}

broker_start
run_on_terminal interrupted
printf '\003' >&9
ended 130
same "checkpoints after Ctrl-C" "$(committed)" ""
same "rounds after Ctrl-C" "$(query "SELECT count(*) FROM round WHERE job = 'interrupted'")" 0

run_on_terminal terminated
kill -TERM "$(cat "/proc/$pid/task/$pid/children")"
ended 42
same "checkpoints after SIGTERM" "$(committed | wc -w)" 1
committed_whole "$(committed)"
finish "Ctrl-C: exit code 130, no save, no restart" "SIGTERM: exit code 42, one checkpoint, no restart"
