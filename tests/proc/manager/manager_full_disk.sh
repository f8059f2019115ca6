#!/bin/bash
# The disk of a manager's checkpoints has room for half a shard, and then is read-only, in the middle of training: that
# save is told to every rank with the culprit and the cause, what was saved before is untouched, nothing half written is
# listed or stays, training goes on, and the next save on a disk that can be written commits and keeps what the policy keeps.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_manager.sh"

checkpoints="$dir/small disk"
needs_tmpfs "$checkpoints" 8m
go() { : >"$dir/go$1"; }
all_said() { # WHAT
    local rank
    for rank in "${!pids[@]}"; do rank_said "$rank" "$1" || return 1; done
}
is_on_disk() { [ "$(cd "$checkpoints" && ls -d [0-9]*/manifest.json 2>/dev/null | sort -n | xargs)" = "$1" ]; }
nothing_under_way() { [ -z "$(cd "$checkpoints/.muster" && ls -d [0-9]* trash-* 2>/dev/null)" ]; }
files() { (cd "$checkpoints" && find [0-9]* -type f | sort | xargs -d '\n' cksum); }

# fails STEP CAUSE - the save of STEP fails for every rank alike, and harms nothing that was saved.
fails() {
    local before culprit
    before=$(files)
    go "$1"
    await "step $1 to be told as not saved" all_said "^error: .*step $1 was not saved"
    culprit=$(sed -n "s/^error: .*peer=\([01]\) .*step $1 was not saved.*/\1/p" "$(log 0)")
    holds "the culprit of step $1, a rank" "${culprit:--1}" -ge 0
    for rank in 0 1; do
        says "$(grep "step $1 was not saved" "$(log $rank)")" "peer=$culprit " "$checkpoints" "$2"
    done
    await "what was half written to go" nothing_under_way_or_read_only
    same "checkpoints after the save of step $1 failed" "$(files)" "$before"
}
nothing_under_way_or_read_only() { [ ! -w "$checkpoints" ] || nothing_under_way; }

broker_start
options=(--every 1 --sharded 1 --cells 65536 --keep-latest 2 --gate "$dir/go")
ranks_start 2 --steps 7
go 0 && go 1
await "two checkpoints" is_on_disk '0/manifest.json 1/manifest.json'

dd if=/dev/zero of="$checkpoints/.ballast" bs=4k 2>/dev/null || true
truncate -s -262144 "$checkpoints/.ballast"
fails 2 'No space left'
rm "$checkpoints/.ballast"
go 3
await "the next one, and the oldest to go" is_on_disk '1/manifest.json 3/manifest.json'

mount -o remount,ro "$checkpoints" || { say "skipped: this user cannot remount"; exit 77; }
fails 4 'Read-only file system'
mount -o remount,rw "$checkpoints"
go 5
await "the next one, and the oldest to go" is_on_disk '3/manifest.json 5/manifest.json'
go 6
ranks_end 0
all_have_saved '0 1 3 5 6'
listed '5 6'
same "causes in the records" "$(query "SELECT count(*) FROM round WHERE state = 'aborted' AND culprit_rank IS NOT NULL")" 2
ranks_start 2 --steps 7
ranks_end 0
each_has resumed 6
finish "a manager's save on a full and on a read-only disk: all ranks are told alike who failed and why, what was saved before is untouched, and the next save commits"
