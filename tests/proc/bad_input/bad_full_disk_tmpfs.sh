#!/bin/bash
# The file system of the checkpoints is really full, and has room again later.
. "$(dirname "$0")/../lib.sh"

checkpoints="$dir/small disk"
needs_tmpfs "$checkpoints" 4m
broker_start
ranks_start 2 --steps 100000 --barrier 1 --cells 8192 --say-every 10
await "step 10" rank_said 0 'at step 10$'
"$muster" save --wait --broker "$broker" --job "$job" >/dev/null
first=$(committed)
dd if=/dev/zero of="$checkpoints/ballast" bs=4k 2>/dev/null || true
save_refused "on a full disk" 'rank 0' 'No space left'
same_why
says "$story" 'rank 0' 'No space left'
# ... and with room for half a shard, it ends in the middle of one
half=$(($(query "SELECT max(bytes) / 2 FROM shard WHERE job = '$job'")))
holds "half a shard" "$half" -ge 16384
truncate -s "-$half" "$checkpoints/ballast"
save_refused "with room for half a shard" 'rank 0' 'No space left'
rm "$checkpoints/ballast"
"$muster" save --wait --broker "$broker" --job "$job" >/dev/null || fail "no save with room on the disk"
committed_whole "$(committed | cut -d' ' -f2)"
kill -TERM "${pids[1]}"
all_preempted
committed_whole "$saved"
same "checkpoints" "$(committed | wc -w)" 3
ranks_start 2 --steps $((saved + 20)) --barrier 1 --cells 8192
all_finished $((saved + 20))
finish "a full disk for shards: aborted, rank and reason named, training goes on; with room again the next save commits, and \
the resumed job ends with the weights of an uninterrupted one"
