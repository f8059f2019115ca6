#!/bin/bash
# What an older copy of the database does not know, in two more shapes: the newest has its manifest and not yet its name
# (its writer died in between); and the directory's path is so long that texts which quote it are cut. The next
# launch does not go on from the older one, it imports the newest, and `muster why` gives no other advice.
# Rules: R11.4.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_put_back.sh"

part=$(printf 'd%.0s' {1..200})
for checkpoints in "$dir/ck" "$dir/long/$part/$part"; do
    job=job_${#checkpoints}
    mkdir -p "$checkpoints"
    broker_start
    kept_at_20
    ranks_start 1 --steps 50 --save-every 20
    saved=20
    all_finished 50
    broker_stop
    records_put_back
    mv "$checkpoints/40" "$checkpoints/.muster/2-2"
    [ "$checkpoints" = "$dir/ck" ] || mv "$checkpoints/.muster/2-2" "$checkpoints/40"
    broker_start
    ranks_start 1 --steps 60
    imports 1 40
    why=$("$muster" why --job "$job" --broker "$broker")
    says "$why" "Rank 0 imports what is there"
    [[ $why != *fallback* && $why != *"muster verify"* ]] || fail "muster why gives advice that does not help: $why"
    saved=40
    ranks_start 1 --steps 60
    all_finished 60
    on_disk 40 || fail "it did not get its name"
    broker_stop
done
broker_start
finish "a newer checkpoint that never got its name, or is in a directory of a long path, is not lost by an older copy of the database"
