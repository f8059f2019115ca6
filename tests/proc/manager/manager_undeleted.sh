#!/bin/bash
# A checkpoint that cannot be deleted: check_for_errors tells it, and close does, with its cause; both once, and the job goes
# on as before. Nothing takes it for deleted.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_manager.sh"

go() { : >"$dir/go$1"; }
is_there() { [ -f "$dir/checkpoints-$job/$1/manifest.json" ]; }
spoil() { # neither file tells any more which round it is of
    echo damaged >"$dir/checkpoints-$job/0/ROUND"
    echo damaged >"$dir/checkpoints-$job/0/manifest.json"
}

broker_start
job=undeleted options=(--every 1 --keep-latest 1 --check 1 --gate "$dir/go")
ranks_start 1 --steps 4
go 0
await "the first checkpoint" is_there 0
spoil
go 1
await "the deletion to fail" grep -q 'checkpoint 1 is not deleted yet' "$(log 0)"
go 2
await "check_for_errors to tell" rank_said 0 '^error: .*checkpoint 1 could not be deleted.*ROUND is damaged'
go 3
ranks_end 0
same "what close told" "$(grep '^closed' "$(log 0)")" 'closed MUSTER_E_CORRUPT'
[ -d "$dir/checkpoints-$job/0" ] || fail "checkpoint 0 went"
same "the record of it" "$(query "SELECT state FROM checkpoint WHERE step = 1")" deleting
finish "a checkpoint that cannot be deleted is told by check_for_errors and by close, and is not taken for deleted"
