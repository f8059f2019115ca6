#!/bin/bash
# A step fails at one rank of `muster run`: the box tells the first cause in its own words, not the consequences.
. "$(dirname "$0")/../lib.sh"

run_failing() { # JOB OPTIONS...
    job=$1
    shift
    code=0
    TRAINER_GROUP=proc-$$-$job MUSTER_CHECKPOINT_DIR="$dir/checkpoints-$job" TORCHELASTIC_ERROR_FILE="$dir/torch-$job.json" \
        timeout "$hangs_after" "$muster" run -n 3 --job "$job" --broker "$broker" --max-failures 0 --output "$dir/logs-$job" \
        -- "$trainer" --steps 100000 --barrier 1 "$@" >"$dir/$job.log" 2>&1 || code=$?
}
value() { sed -n "s/.*\"$2\":\"\\{0,1\\}\\([^,\"]*\\).*/\\1/p" "$1"; } # FILE KEY, of one line of JSON
box() { sed -n '/^+---- muster run/,/^+----$/p' "$dir/$job.log"; }

broker_start
run_failing step --fail-rank 1 --fail-step 30
same "exit code of muster run" "$code" 1
says "$(box)" '^\| first error: failed, rank 1 exited with code 1' '^\| rank 1 on [^ ]+ at [0-9-]{10} [0-9:]{8}, step (29|30)$' \
    '^\| MUSTER_E_STEP, code 7:$' '^\|   the step function returned 7$' '^\|   \(.*/logs-step/1.error.json\)$'
same "boxes" "$(grep -c '^+---- muster run' "$dir/$job.log")" 1
file=$dir/logs-step/1.error.json
same "status" "$(value "$file" status)" MUSTER_E_STEP
same "rank" "$(value "$file" rank)" 1
same "code" "$(value "$file" code)" 7
same "host" "$(value "$file" host)" "$(uname -n)"
same "generation" "$(value "$file" generation)" 1
same "torchrun's file" "$(value "$dir/torch-step.json" timestamp | grep -c '^[0-9]\{10\}$')" 1
for rank in 0 2; do
    same "status at rank $rank" "$(value "$dir/logs-step/$rank.error.json" status)" MUSTER_E_PEER
    same "whose error at rank $rank" "$(value "$dir/logs-step/$rank.error.json" error_rank)" 1
done
same "half-written files" "$(find "$dir/logs-step" -name '*.json.*' | wc -l)" 0

# The same with muster_node_fail.
run_failing own --mode 1 --fail-rank 2 --fail-step 20
says "$(box)" '^\| first error: failed, rank 2 exited' '^\| MUSTER_E_STEP, code 7:$' "the loop's own step failed"

# A node that cannot open says why as well.
run_failing place --limit-rank 0 --limit-bytes 0
[ "$code" != 0 ] || fail "a rank that may not write did not fail"
finish "the box of muster run: first cause with rank, host, time, step, code and text; error files of all ranks, torchrun's too"
