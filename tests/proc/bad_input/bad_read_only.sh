#!/bin/bash
# The checkpoints' file system becomes read-only in the middle of a job: the round aborts and names rank and cause, what is
# committed stays and training goes on; writable again, the next save commits. A launch on a read-only one says so.
. "$(dirname "$0")/../lib.sh"

checkpoints="$dir/small disk"
needs_tmpfs "$checkpoints" 4m
broker_start
ranks_start 2 --steps 100000 --barrier 1 --cells 4096 --say-every 10
await "step 10" rank_said 0 'at step 10$'
"$muster" save --wait --broker "$broker" --job "$job" >/dev/null
first=$(committed)
await "its manifest" test -e "$checkpoints/$first/manifest.json"
files=$(cd "$checkpoints/$first" && find . -type f | sort | xargs -d '\n' cksum)
mount -o remount,ro "$checkpoints" || { say "skipped: this user cannot remount"; exit 77; }
save_refused "on a disk that is read-only" 'rank 0' 'Read-only file system'
same "files of the older checkpoint" "$(cd "$checkpoints/$first" && find . -type f | sort | xargs -d '\n' cksum)" "$files"
job=second
launch_before=$launch
world=1 launch=$((launch + 1)) kept=("${pids[@]}") pids=()
rank_start 0 --steps 10
ranks_end 1
says "$(error_of 0)" MUSTER_E_IO "$checkpoints" 'read-only'
job=job world=2 launch=$launch_before pids=("${kept[@]}")
mount -o remount,rw "$checkpoints"
"$muster" save --wait --broker "$broker" --job "$job" >/dev/null || fail "no save on a disk that can be written again"
kill -TERM "${pids[1]}"
all_preempted
committed_whole "$saved"
finish "a disk that becomes read-only: aborted, rank and cause named, what is committed untouched; writable again it saves"
