#!/bin/bash
# `muster verify` reads the checkpoints of a job that saves and deletes all the while: what was deleted before it came to
# it is gone, not damaged; with a broker and with the database alone. (That a pin is prolonged: test_hold.c.)
. "$(dirname "$0")/../lib.sh"
trainer=$TESTS_DIR/proc/prog_keep
keep=20

deleted() { query "SELECT count(*) FROM checkpoint WHERE state = 'deleted'"; }
deleted_at_least() { [ "$(deleted)" -ge "$1" ]; }
no_pin() { [ -z "$(query "SELECT id FROM pin WHERE id LIKE 'verify-%'")" ]; }

broker_start
ranks_start 1 "latest $keep" '' '' 100000 0
await "the first deletions" deleted_at_least 3
for turn in 1 2 3 4 5 6 7 8; do
    before=$(deleted)
    if [ $((turn % 2)) = 0 ]; then where=(--broker "$broker"); else where=(--db "$db"); fi
    ask verify --timeout 60 "${where[@]}" >"$dir/verify.txt" || fail "turn $turn, ${where[*]}: $(cat "$dir/verify.txt")"
    says "$(cat "$dir/verify.txt")" '^[1-9][0-9]* checkpoints* of job job, .* 0 damaged'
    await "deletions after turn $turn" deleted_at_least $((before + 2))
done
await "no pin to be left" no_pin
kill -TERM "${pids[0]}"
rank_ends 0 42
finish "a verify beside deletions takes nothing for damaged that was deleted, with a broker and without, and leaves no pin"
