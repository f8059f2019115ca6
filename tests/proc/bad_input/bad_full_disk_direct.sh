#!/bin/bash
# A shard that is large enough to be written past the page cache, on a real file system that is full in the middle of it:
# ext3 takes such writes, and gives no room ahead.
. "$(dirname "$0")/../lib.sh"

checkpoints="$dir/small disk"
mkdir "$checkpoints"
truncate -s 700M "$dir/disk"
mkfs.ext3 -q -F "$dir/disk" 2>/dev/null && mount -o loop "$dir/disk" "$checkpoints" 2>/dev/null ||
    { say "skipped: this user cannot mount a file of its own (mkfs.ext3, loop device)"; exit 77; }
mounted+=("$checkpoints")
broker_start
ranks_start 1 --steps 100000 --step-ms 20 --ballast-bytes $((260 << 20))
await "the rank to begin" rank_said 0 '^opened'
"$muster" save --wait --broker "$broker" --job "$job" >/dev/null || fail "no save with room on the disk"
first=$(committed)
bytes=$(query "SELECT max(bytes) FROM shard WHERE job = '$job'")
holds "bytes of a shard" "$bytes" -ge $((256 << 20))
files=$(cd "$checkpoints/$first" && find . -type f | sort | xargs -d '\n' cksum)
dd if=/dev/zero of="$checkpoints/ballast" bs=1M 2>/dev/null || true
truncate -s "-$((bytes / 2))" "$checkpoints/ballast"
save_refused "with room for half a shard" 'rank 0' 'No space left'
same "files of the older checkpoint" "$(cd "$checkpoints/$first" && find . -type f | sort | xargs -d '\n' cksum)" "$files"
same_why
says "$story" 'rank 0' 'No space left'
rm "$checkpoints/ballast"
"$muster" save --wait --broker "$broker" --job "$job" >/dev/null || fail "no save with room on the disk again"
same "checkpoints" "$(committed | wc -w)" 2
kill_child "${pids[0]}" "the rank"
finish "a disk that is full in the middle of a direct write: rank and reason named, the older checkpoint is untouched, and with \
room again the next save commits"
