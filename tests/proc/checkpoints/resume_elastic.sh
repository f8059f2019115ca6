#!/bin/bash
# A sharded job of 4 ranks goes on as one of 2, of 8 and of 3: each rank takes its own parts of the tensors, and the
# weights are, bit for bit, what they would be had nobody ever stopped.
. "$(dirname "$0")/../lib.sh"

trainer=$TESTS_DIR/proc/prog_elastic
bits() { # of all ranks together
    local rank sum=0

    for rank in "${!pids[@]}"; do
        sum=$((sum + $(field "$rank" bits)))
    done
    printf '%s\n' "$sum"
}
preempted() { # all ranks left at one step, with the right weights; sets $saved
    ranks_end 42
    saved=$(field 0 done)
    each_has "done" "$saved"
    same "bits of the weights at step $saved" "$(bits)" "$("$trainer" expect "$saved")"
    committed_whole "$saved"
}

is_read() { # a reader that knows of no parts has all of them
    same "what a reader gets of the $1" "$2" "$saved $("$trainer" expect "$saved")"
}

broker_start
ranks_start 4 100000 2
await "step 50" rank_said 0 'at step 50$'
kill -TERM "${pids[2]}"
preempted
is_read broker "$(MUSTER_JOB=$job MUSTER_BROKER=$broker "$trainer" read)"
is_read directory "$(MUSTER_CHECKPOINT_DIR=$dir/checkpoints-$job "$trainer" read)"
for world in 2 8 3; do
    before=$saved
    ranks_start "$world" 100000 2
    for ((rank = 0; rank < world; rank++)); do
        await "rank $rank of $world to resume" rank_said "$rank" "^opened at step $before\$"
    done
    await "a step beyond" rank_said 0 "at step $(((before / 10 + 3) * 10))\$"
    kill -TERM "${pids[0]}"
    preempted
    each_has resumed "$before"
done

# A part that is damaged: the ranks that need it name it, nobody starts.
shard=$(ls "$dir/checkpoints-$job/$saved"/shard-00001-*.safetensors)
size=$(stat -c %s "$shard")
# the table of sums is at the end: 3 tensors of one piece each, and 2 sums; before it are the last of m's bytes
printf '\377\376\375' | dd of="$shard" bs=1 seek=$((size - 5 * 16 - 30)) conv=notrunc status=none
ranks_start 2 100000 2
ranks_end 1
says "$(cat "$(log 0)" "$(log 1)")" 'shard-00001-.* is damaged in tensor "m"'
finish "4 ranks' shards resumed by 2, 8 and 3 ranks: the weights bit for bit, damage named with its tensor" \
    "a reader of the broker's and of the directory gets the whole tensors"
