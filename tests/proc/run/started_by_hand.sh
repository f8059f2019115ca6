#!/bin/bash
# Processes that are started by hand, without a rank, under one name: the first one is a job of one, and the next is told
# what to set, with a broker and without one.
. "$(dirname "$0")/../lib.sh"

by_hand() { # NAME OPTIONS... - one more
    TRAINER_GROUP=$group-$1 "$trainer" "${@:2}" --step-ms 20 --steps 100000 </dev/null >"$dir/$1.log" 2>&1 &
    started+=($!)
}
tells() { grep -qE "$2" "$dir/$1.log"; }

broker_start
export MUSTER_JOB=hand MUSTER_BROKER=$broker MUSTER_CHECKPOINT_DIR=$dir/checkpoints
by_hand first
joined() { [ "$(query "SELECT count(*) FROM node WHERE job = 'hand'")" = 1 ]; }
await "the first to join" joined
by_hand second
await "the second to be told" tells second 'is held by process .*muster run -n N.*MUSTER_RANK and MUSTER_WORLD_SIZE'

export MUSTER_BROKER=ipc://$dir/nobody MUSTER_CHECKPOINT_DIR=$dir/alone MUSTER_JOB=alone
by_hand third --offline 1 --connect-ms 100
await "the third to go on alone" tells third 'goes on alone'
by_hand fourth --offline 1 --connect-ms 100
await "the fourth to be told" tells fourth 'another process without a broker.*muster run -n N.*MUSTER_RANK and MUSTER_WORLD_SIZE'
finish "who is started without a rank beside another is told what to set"
