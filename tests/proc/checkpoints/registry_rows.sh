#!/bin/bash
# What the registry has of each checkpoint: its shards as they come, committed once, metrics, position and times, also a
# rank's own; the same from the broker, the database and as JSON.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_manager.sh"

number() { query "SELECT $1 FROM $2 WHERE job = '$job' AND step = $3 AND state = 'committed'"; }
of_rank() { query "SELECT shard.$1 FROM shard JOIN checkpoint USING (job, round) WHERE job = '$job' AND step = $2 AND rank = $3"; }

# --- shards as they come: rank 1 comes late to each step
broker_start
options=(--every 1 --sharded 1 --skew-ms 3000)
half_written() { # a list that was made while there was one shard of two has the steps before it alone
    local listed before

    before=$(ask checkpoints --broker "$broker" | grep -E 'writing .* 1/2 ')
    listed=$(MUSTER_JOB=$job MUSTER_BROKER=$broker "$TESTS_DIR/proc/prog_reader" list)
    [ "$(ask checkpoints --broker "$broker" | grep -E 'writing .* 1/2 ')" = "$before" ] || return 1
    [ "$listed" = "$(seq -s ' ' 0 $(($(awk '{ print $2 }' <<<"$before") - 2)))" ]
}
ranks_start 2 --steps 2
await "a list made while there is one shard of two" half_written
ranks_end 0
all_have_saved '0 1'
same "shards" "$(query "SELECT step, count(rank), shards_required FROM checkpoint JOIN shard USING (job, round) GROUP BY step")" \
    "$(printf '1|2|2\n2|2|2')"
same "commits" "$(query "SELECT count(*), count(DISTINCT round) FROM event WHERE job = '$job' AND kind = 'commit'")" '2|2'

# --- what the save told: of step index 1, batch 1 of epoch 0, sample 100
same "position" "$(number 'epoch, step_in_epoch, data_position' checkpoint 2)" '0|1|100'
says "$(number metrics checkpoint 2)" '"loss": *4'
says "$(query 'SELECT custom FROM checkpoint_custom ORDER BY round DESC LIMIT 1')" 'step 1'
bytes=$(query "SELECT sum(shard.bytes) FROM shard JOIN checkpoint USING (job, round) WHERE step = 2")
same "bytes" "$(number bytes checkpoint 2)" "$bytes"
same "bytes on disk" "$(cat "$dir/checkpoints-$job"/1/shard-* | wc -c)" "$bytes"
for rank in 0 1; do
    holds "save time of rank $rank" "$(of_rank save_ms 2 $rank)" -ge 0
    same "blocked time of rank $rank, which saves in the foreground" "$(of_rank blocked_ms 2 $rank)" "$(of_rank save_ms 2 $rank)"
done
holds "time from the decision to the commit" "$(number total_ms checkpoint 2)" -ge 1000 # rank 1 came so late

# --- times of saves behind: the second waits for the first
job=behind gate="$dir/gate"
trainer=$TESTS_DIR/proc/prog_trainer
options=(--behind 1 --save-fn 1 --save-gate "$gate" --say-every 10 --step-ms 2)
saving() { [ "$(grep -c '^in the save of step' "$(log 0)")" -ge "$1" ]; }
decided() { [ "$(query "SELECT count(*) FROM round WHERE job = '$job' AND step > 0")" -ge "$1" ]; }
touch "$gate"
ranks_start 1 --steps 1000000
await "step 10" rank_said 0 'at step 10$'
"$muster" save --broker "$broker" --job "$job" >/dev/null
await "the first save" saving 1
"$muster" save --broker "$broker" --job "$job" >/dev/null
await "the second decision" decided 2
at_step() { [ "$(query "SELECT at_step_ms >= 0 FROM participant WHERE job = '$job' ORDER BY round DESC LIMIT 1")" = 1 ]; }
await "the second save's step" at_step
waits_since=$(now_ms)
await "a while" passed_ms "$waits_since" 400
rm "$gate"
both() { [ "$(committed | wc -w)" = 2 ]; }
await "both commits" both
read -r first second <<<"$(committed)"
holds "ms that the second save waited for the first" "$(number waited_ms checkpoint "$second")" -ge 400
same "the same of its rank" "$(of_rank waited_ms "$second" 0)" "$(number waited_ms checkpoint "$second")"
holds "ms that the first save took, which stood still as long" "$(of_rank save_ms "$first" 0)" -ge 400
same "ms that the first save waited" "$(number waited_ms checkpoint "$first")" 0
holds "ms that training stood still for the first save" "$(number blocked_ms checkpoint "$first")" -lt "$(number total_ms checkpoint "$first")"
ask checkpoints --json --broker "$broker" >"$dir/of_broker.txt"
ask checkpoints --json --db "$db" >"$dir/of_database.txt"
same "what the database tells" "$(cat "$dir/of_database.txt")" "$(cat "$dir/of_broker.txt")"
for column in shards shards_required save_ms blocked_ms waited_ms total_ms bytes_per_s epoch step_in_epoch data_position metrics; do
    grep -q "\"$column\"" "$dir/of_broker.txt" || fail "checkpoints --json does not tell $column"
done
kill -TERM "${pids[0]}"
ranks_end 42
finish "shards as they come, one commit; metrics, position, bytes and custom metadata of each checkpoint" \
    "times of each save and each rank: how long it took, held training up, and waited for the one before"
