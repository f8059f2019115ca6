#!/bin/bash
# A manager goes back to a checkpoint beside newer ones that its broker does not know: the database is an older copy, and the
# manifests are an older muster's, which do not name it. A launch that asks for no checkpoint is refused there; who asks to go
# back has said what is to become of newer ones (R11.7).
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_put_back.sh"
. "$(dirname "$0")/../lib_manager.sh"

job=back options=(--every 1)
broker_start
ranks_start 2 --steps 3
ranks_end 0
broker_stop
records_keep
broker_start
ranks_start 2 --steps 6
ranks_end 0
on_disk 0 1 2 3 4 5
broker_stop
records_put_back
without_checksum "$dir/checkpoints-$job"/*/manifest.json
broker_start
ranks_start 2 --steps 8
ranks_end 1
says "$(error_of 0)" MUSTER_E_RESTORE "knows of no checkpoint of job $job at step" "muster import"
# A rank whose program takes longer to start than its launch lasts hears the same, and waits for nobody (R3.8).
world=2 launch=$((launch + 1)) pids=()
rank_through=(bash -c 'until [ -e "$0" ]; do sleep 0.01; done; exec "$@"' "$dir/begin")
rank_start 1 --steps 8
rank_through=()
rank_start 0 --steps 8
ranks_end 1 0
touch "$dir/begin"
ranks_end 1 1
says "$(error_of 1)" MUSTER_E_RESTORE 'came after its launch had ended' "muster import"
ranks_start 2 --steps 3 --restore 1
ranks_end 0
each_has resumed 1
finish "a launch that asks for no checkpoint is refused beside newer ones that its broker does not know, and one that goes back is not"
