#!/bin/bash
# `muster verify` reads the checkpoints of a job that saves and deletes all the while: it holds what it reads, and what
# was deleted before it came to it is gone, not damaged; with a broker and with the database alone.
. "$(dirname "$0")/lib.sh"
trainer=$TESTS_DIR/proc/prog_keep
keep=20

deleted() { query "SELECT count(*) FROM checkpoint WHERE state = 'deleted'"; }
deleted_at_least() { [ "$(deleted)" -ge "$1" ]; }
pinned() { query "SELECT checkpoint FROM pin WHERE id LIKE 'verify-%'"; }
no_pin() { [ -z "$(pinned)" ]; }

# verify_stopped - a verify that stands still while it holds a checkpoint; sets $verify and $held. It holds each for a
# moment, so this may take more than one.
verify_stopped() {
    local deadline=$((SECONDS + patience))

    while [ "$SECONDS" -lt "$deadline" ]; do
        ask verify --broker "$broker" >"$dir/verify.txt" &
        verify=$!
        started+=("$verify")
        while is_ours "$verify"; do
            no_pin || { kill -STOP -- "$(pgrep -P "$verify" || printf %s "$verify")" && break; }
        done
        held=$(pinned)
        [ -z "$held" ] || return 0
        pkill -CONT -P "$verify" 2>/dev/null || kill -CONT "$verify" 2>/dev/null || true
        wait "$verify" || fail "a verify failed: $(cat "$dir/verify.txt")"
    done
    fail "no verify was seen to hold a checkpoint"
}

broker_start
ranks_start 1 "latest $keep" '' '' 100000 0
await "the first deletions" deleted_at_least 3
for turn in 1 2 3 4; do
    before=$(deleted)
    if [ $((turn % 2)) = 0 ]; then where=(--broker "$broker"); else where=(--db "$db"); fi
    ask verify "${where[@]}" >"$dir/verify.txt" || fail "turn $turn, ${where[*]}: $(cat "$dir/verify.txt")"
    says "$(cat "$dir/verify.txt")" '^[1-9][0-9]* checkpoints of job job, .* 0 damaged'
    await "deletions after turn $turn" deleted_at_least $((before + 2))
done
verify_stopped
await "the deletion of all that was there" deleted_at_least $(($(deleted) + keep + 2))
same "state of what is held" "$(query "SELECT state FROM checkpoint WHERE round = $held")" committed
pkill -CONT -P "$verify" 2>/dev/null || kill -CONT "$verify"
wait "$verify" || fail "the verify that was stopped failed: $(cat "$dir/verify.txt")"
says "$(cat "$dir/verify.txt")" '^[1-9][0-9]* checkpoints of job job, .* 0 damaged'
await "no pin to be left" no_pin
kill -TERM "${pids[0]}"
rank_ends 0 42
finish "what a verify reads is held; what was deleted before is not taken for damaged, with a broker and without"
