#!/bin/bash
# `muster save --wait`: an agreed checkpoint now, and the training goes on.
. "$(dirname "$0")/../lib.sh"

broker_start
for job in replicated sharded; do
    options=(--steps 300 --say-every 20)
    [ "$job" = replicated ] || options+=(--sharded 1)
    [ "$job" = sharded ] || options+=(--barrier 1)
    ranks_start 3
    await "step 20" rank_said 0 'at step 20$'
    answer=$("$muster" save --wait --broker "$broker" --job "$job") || fail "muster save: exit code $?: $answer"
    says "$answer" 'committed at step [0-9]+'
    saved=$(committed)
    says "$answer" "step $saved\\b"
    saved_before=$saved saved=0
    all_finished 300
    saved=$saved_before
    committed_whole "$saved"
    same "cause" "$(query "SELECT cause FROM checkpoint WHERE job = '$job'")" operator
    same_why
    says "$story" "step $saved" committed
done

# How far a long save is: rank 0 has saved, and rank 1 saves until the gate is gone. A line in a log, a bar on a terminal.
job=long options=(--sharded 1 --save-fn 1 --steps 1000000 --step-ms 2 --say-every 10 --until-file "$dir/end")
world=2 launch=1 pids=()
touch "$dir/gate"
rank_start 0
rank_start 1 --save-gate "$dir/gate"
await "some steps" rank_said 0 '^at step'
ask save --broker "$broker" --job "$job" >/dev/null
one_saved() { [ "$(query "SELECT sum(saved_ms >= 0) FROM participant WHERE job = '$job'")" = 1 ]; }
await "rank 0 to have saved" one_saved
waits=("$muster" save --wait --broker "$broker" --job "$job")
MUSTER_TEST_PROGRESS_MS=0 "${waits[@]}" >"$dir/log.out" 2>"$dir/log.err" &
in_log=$!
MUSTER_TEST_PROGRESS_MS=0 python3 -c 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)' "${waits[@]}" </dev/null >"$dir/terminal" &
on_terminal=$!
started+=("$in_log" "$on_terminal")
await "the line" grep -Eq '^muster: save: shards: 1 of 2' "$dir/log.err"
await "the bar" grep -aEq 'save: shards \[#{15}-{15}\] 1 of 2' "$dir/terminal"
rm "$dir/gate"
for tool in "$in_log" "$on_terminal"; do wait "$tool" || fail "exit code $? of muster save --wait: $(cat "$dir/log.err" "$dir/terminal")"; done
says "$(cat "$dir/log.out")" '^Round [0-9]+ is committed at step [0-9]+'
says "$(tr '\r' '\n' <"$dir/terminal")" $'^\033\\[KRound [0-9]+ is committed at step [0-9]+' # the bar is gone
touch "$dir/end"
ranks_end 0

if "$muster" save --wait --broker "$broker" --job nosuch >"$dir/answer" 2>&1; then
    fail "muster save of an unknown job succeeded"
fi
says "$(cat "$dir/answer")" nosuch 'its jobs are' replicated sharded
finish "operator's saves, both layouts: committed, nobody left, all steps run once" "an unknown job is named, with those there are"
