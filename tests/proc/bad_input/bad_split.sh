#!/bin/bash
# Parts of a split tensor that leave a hole are not committed: the save fails and names tensor and rank, for an operator's
# save and for a termination. What was committed before, by a program without that mistake, is resumed from.
. "$(dirname "$0")/../lib.sh"

trainer=$TESTS_DIR/proc/prog_elastic
broker_start
ranks_start 3 100000 2
await "step 50" rank_said 0 'at step 50$'
kill -TERM "${pids[2]}"
ranks_end 42
saved=$(committed)

ELASTIC_SHORT=1 ranks_start 3 100000 2
for rank in 0 1 2; do await "rank $rank to resume" rank_said $rank "^opened at step $saved\$"; done
await "a step beyond" rank_said 0 "at step $(((saved / 10 + 3) * 10))\$"
code=0
"$muster" save --broker "$broker" --job "$job" --wait >"$dir/answer" 2>&1 || code=$?
same "exit code of muster save" "$code" 1
hole='tensor "[mw]": slices 668 to 669 of 1003 along axis [01] are saved by no rank'
says "$(cat "$dir/answer")" "$hole"
kill -TERM "${pids[0]}"
ranks_end 42
says "$(cat "$(log 0)" "$(log 1)" "$(log 2)")" "$hole"
same "committed" "$(committed)" "$saved"
same_why
says "$story" "$hole"

ranks_start 3 100000 2
for rank in 0 1 2; do await "rank $rank to resume" rank_said $rank "^opened at step $saved\$"; done
kill -TERM "${pids[1]}"
ranks_end 42
finish "a hole in a split tensor is not committed: tensor and rank are named to all, and the older checkpoint is resumed from"
