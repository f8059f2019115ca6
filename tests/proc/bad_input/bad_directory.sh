#!/bin/bash
# A checkpoint directory that cannot be written, or is another job's.
. "$(dirname "$0")/../lib.sh"

broker_start
world=1
touch "$dir/a file"
for wanted in "MUSTER_E_ARGUMENT|Not a directory|$dir/a file/checkpoints" \
    "MUSTER_E_IO|No such file or directory|/proc/muster/checkpoints"; do
    IFS='|' read -r status why checkpoints <<<"$wanted"
    launch=$((launch + 1)) pids=()
    rank_start 0
    ranks_end 1
    says "$(error_of 0)" "status=$status " "cannot (look at|create the directory) (/proc/muster|$dir/a file)" "$why" \
        "correct the path"
    say "$(error_of 0)"
done
checkpoints="$dir/shared checkpoints"
ranks_start 1 --steps 50 --save-every 20
ranks_end 0
files=$(cd "$checkpoints" && find . -type f | sort | xargs -d '\n' cksum)
job=other
ranks_start 1 --steps 50 --save-every 20
ranks_end 1
says "$(error_of 0)" 'status=MUSTER_E_JOB ' 'job' other "$checkpoints"
say "$(error_of 0)"
same "files of the first job" "$(cd "$checkpoints" && find . -type f | sort | xargs -d '\n' cksum)" "$files"
same "jobs that the broker knows" "$(query 'SELECT job FROM job')" job
minimal=$BUILD_DIR/client/examples/minimal
code=0
MUSTER_BROKER=$broker MUSTER_CHECKPOINT_DIR=$checkpoints "$muster" run -n 1 --job third -- "$minimal" >"$dir/third.log" 2>&1 || code=$?
same "exit code of muster run" "$code" 93
same "launches" "$(grep -c 'launch [0-9]*: starting' "$dir/third.log")" 1

# The second rank's host has not mounted what the first one's has: one path, and two directories.
also=()
if [ "$(id -u)" = 0 ] && unshare -m --propagation private true 2>/dev/null; then
    job=split checkpoints="$dir/split" world=2 launch=$((launch + 1)) pids=()
    mkdir "$dir/split" "$dir/not mounted"
    rank_start 0 --steps 5
    await "the launch" grep -q 'job split: generation 1 opened' "$dir/musterd.log"
    rank_through=(unshare -m --propagation private bash -c 'mount --bind "$0" "$1" && shift && exec "$@"' "$dir/not mounted" "$dir/split")
    rank_start 1 --steps 5 --open-ms 100
    ranks_end 1 1
    says "$(error_of 1)" 'status=MUSTER_E_LAYOUT ' "$dir/split is one directory for rank 1 on .* and another for rank 0 on .*; mount the same file system"
    # A refused rank cannot know who else works in the directory that it sees: it removes nothing.
    made=$(cd "$dir/not mounted" && find . -type f | sort | xargs -d '\n' cksum)
    same "what was made in place of the mount" "$(cd "$dir/not mounted" && find . | sort | xargs)" ". ./.muster ./.muster/JOB ./.muster/NUMBER"
    rank_start 1 --steps 5 --open-ms 100
    ranks_end 1 1
    says "$(error_of 1)" 'status=MUSTER_E_LAYOUT ' "mount the same file system"
    same "what was made there, after another try" "$(cd "$dir/not mounted" && find . -type f | sort | xargs -d '\n' cksum)" "$made"
    rank_through=()
    rank_start 1 --steps 5
    ranks_end 0
    also=("a rank that sees another directory than the first one under the same path is told so, each time, and removes nothing")
fi
finish "a checkpoint directory below a file is MUSTER_E_ARGUMENT, one that cannot be made MUSTER_E_IO, another job's is MUSTER_E_JOB, with its path, and is not tried again; nothing was touched" \
    ${also[@]+"${also[@]}"}
